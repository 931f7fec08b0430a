//! Errors of the handles, each with the code that reaches a user.

use std::time::Duration;

use tidemill_types::{ErrorCode, Offset};

/// What is known of a produce call that failed (2.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Surely in no ledger.
    NotWritten,
    /// Perhaps written, perhaps recovered later.
    Unknown,
}

/// Why a produce call gave no offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProduceError {
    /// This broker does not own the partition (any more), or is giving it up.
    #[error("this broker does not own the partition")]
    NotOwner,
    /// The partition was dropped before the batch was handed to a ledger.
    #[error("the batch was not written")]
    NotWritten,
    /// The batch was handed to a ledger and nobody knows what became of it.
    #[error("the outcome of the append is unknown")]
    Unknown,
    /// A gap in the sequence of an idempotent producer.
    #[error("sequence {found} does not follow, {expected} is expected")]
    OutOfOrder {
        /// The sequence that is expected next.
        expected: i32,
        /// The sequence of the batch.
        found: i32,
    },
    /// A newer epoch of the producer id exists.
    #[error("producer epoch {found} is fenced by epoch {current}")]
    ProducerFenced {
        /// The newest epoch.
        current: i16,
        /// The epoch of the batch.
        found: i16,
    },
    /// Nothing is known of the producer id (never seen, or expired), and the sequence is not 0.
    #[error("nothing is known of producer id {id}, its first batch must have sequence 0")]
    UnknownProducer {
        /// The producer id.
        id: i64,
    },
    /// Somebody was told that nothing new of this producer epoch is written on the partition any more.
    #[error("producer id {id} is closed on this partition: its last outcomes were asked for")]
    ProducerClosed {
        /// The producer id.
        id: i64,
    },
    /// An older duplicate whose offset is no longer known.
    #[error("the batch was written before, its offset is no longer known")]
    DuplicateSequence,
    /// A call mixes batches that were written before with new ones, or one producer has more batches in it than are
    /// remembered: batches of a call are retried as they were (2.1.4).
    #[error("the batches of one call must be retried together and unchanged")]
    Rebatched,
    /// Transactional batches need a coordinator, which this version does not have.
    #[error("transactional batches are not supported")]
    Transactional,
    /// No batch in the call.
    #[error("the call has no batch")]
    Empty,
    /// A batch, or all of a call, is above the limit.
    #[error("{bytes} bytes are more than the {max} allowed")]
    TooLarge {
        /// Bytes.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The disks of so many bookies are full that no ack quorum is left, and stayed so.
    #[error("the bookies' disks are full: fewer are writable than the {ack_quorum} that must acknowledge")]
    DiskFull {
        /// Acknowledgements that an append waits for.
        ack_quorum: u8,
        /// Try again after.
        retry_after: Duration,
    },
    /// The in-flight budget of the broker stayed full.
    #[error("too much data waits for acknowledgement")]
    Overloaded {
        /// Try again after.
        retry_after: Duration,
    },
}

impl ProduceError {
    /// The code that reaches a user.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotOwner => ErrorCode::NotOwner,
            Self::NotWritten => ErrorCode::NotWritten,
            Self::Unknown => ErrorCode::OutcomeUnknown,
            Self::OutOfOrder { .. } => ErrorCode::OutOfOrderSequence,
            Self::ProducerFenced { .. } => ErrorCode::ProducerFenced,
            Self::UnknownProducer { .. } | Self::ProducerClosed { .. } => ErrorCode::UnknownProducer,
            Self::DuplicateSequence => ErrorCode::DuplicateSequence,
            Self::Rebatched | Self::Empty => ErrorCode::InvalidArgument,
            Self::Transactional => ErrorCode::Unsupported,
            Self::TooLarge { .. } => ErrorCode::MessageTooLarge,
            Self::DiskFull { .. } => ErrorCode::DiskFull,
            Self::Overloaded { .. } => ErrorCode::Overloaded,
        }
    }

    /// Whether the batch may be in the log. [`ProduceError::DuplicateSequence`] was written by an earlier call, not by
    /// this one.
    #[must_use]
    pub fn outcome(&self) -> WriteOutcome {
        match self {
            Self::Unknown => WriteOutcome::Unknown,
            _ => WriteOutcome::NotWritten,
        }
    }
}

/// Why a read or a question about offsets gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// This broker does not own the partition, or cannot prove that it still does (metadata, Sessions).
    #[error("this broker does not own the partition")]
    NotOwner,
    /// The partition is being taken over.
    #[error("the partition is being taken over")]
    NotReady,
    /// Above the high watermark.
    #[error("offset {offset} is outside of {log_start}..={high_watermark}")]
    OutOfRange {
        /// The asked offset.
        offset: Offset,
        /// First offset of the log.
        log_start: Offset,
        /// Offset behind the last acknowledged record.
        high_watermark: Offset,
    },
    /// The records are trimmed.
    #[error("records below {log_start} are trimmed")]
    Trimmed {
        /// First offset of the log.
        log_start: Offset,
    },
    /// Every replica says that acknowledged records are not there.
    #[error("records from offset {offset} on are lost: {why}")]
    DataLoss {
        /// First lost offset.
        offset: Offset,
        /// Which entry.
        why: String,
    },
    /// Stored bytes do not have the format.
    #[error("stored data is not readable: {0}")]
    Corrupt(String),
    /// Bookies or the quorum do not answer.
    #[error("the data cannot be read now: {0}")]
    Unavailable(String),
}

impl FetchError {
    /// The code that reaches a user.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotOwner => ErrorCode::NotOwner,
            Self::NotReady | Self::Unavailable(_) => ErrorCode::NotReady,
            Self::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
            Self::Trimmed { .. } => ErrorCode::Trimmed,
            Self::DataLoss { .. } => ErrorCode::DataLoss,
            Self::Corrupt(_) => ErrorCode::Corrupt,
        }
    }
}
