//! Why a record was not accepted, and why an accepted one was not delivered.

use std::{fmt, sync::Arc};

use tidemill_record::BatchError;
use tidemill_types::ErrorCode;

/// A record that the producer did not take; nothing of it will be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProducerError {
    /// The memory bound is reached (`try_send` only).
    #[error("send to {topic}: the producer's memory is full ({limit} bytes) ({})", ErrorCode::Overloaded)]
    Full {
        /// The topic.
        topic: Arc<str>,
        /// The bound, bytes.
        limit: usize,
    },
    /// Larger than a batch may be.
    #[error(
        "send to {topic}: the record needs {bytes} bytes, allowed are {max} ({})",
        ErrorCode::MessageTooLarge
    )]
    TooLarge {
        /// The topic.
        topic: Arc<str>,
        /// Bytes of a batch with the record alone.
        bytes: usize,
        /// The topic's limit or the memory bound, bytes.
        max: usize,
    },
    /// No such partition.
    #[error(
        "send to {topic}/{partition}: the topic has {partitions} partitions ({})",
        ErrorCode::UnknownPartition
    )]
    UnknownPartition {
        /// The topic.
        topic: Arc<str>,
        /// The index asked for.
        partition: u32,
        /// How many there are.
        partitions: u32,
    },
    /// The record breaks the format: too many headers, a bad timestamp.
    #[error("send to {topic}: {why} ({})", ErrorCode::InvalidArgument)]
    Invalid {
        /// The topic.
        topic: Arc<str>,
        /// What is wrong.
        why: BatchError,
    },
    /// The handle was made by another producer.
    #[error("send to {topic}: the topic handle is another producer's ({})", ErrorCode::InvalidArgument)]
    ForeignHandle {
        /// The topic.
        topic: Arc<str>,
    },
    /// Another instance took over the producer id: this producer ends.
    #[error("send to {topic}: the producer was fenced ({})", ErrorCode::ProducerFenced)]
    Fenced {
        /// The topic.
        topic: Arc<str>,
    },
    /// No room within the delivery time-out.
    #[error(
        "send to {topic}: no memory became free within the delivery time-out ({})",
        ErrorCode::DeadlineExceeded
    )]
    TimedOut {
        /// The topic.
        topic: Arc<str>,
    },
    /// `close` was called.
    #[error("send to {topic}: the producer is closed ({})", ErrorCode::NotReady)]
    Closed {
        /// The topic.
        topic: Arc<str>,
    },
}

impl ProducerError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Full { .. } => ErrorCode::Overloaded,
            Self::TooLarge { .. } => ErrorCode::MessageTooLarge,
            Self::UnknownPartition { .. } => ErrorCode::UnknownPartition,
            Self::Invalid { .. } | Self::ForeignHandle { .. } => ErrorCode::InvalidArgument,
            Self::Fenced { .. } => ErrorCode::ProducerFenced,
            Self::TimedOut { .. } => ErrorCode::DeadlineExceeded,
            Self::Closed { .. } => ErrorCode::NotReady,
        }
    }
}

/// Whether a record that was not acknowledged can be in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotDelivered {
    /// Surely not written, now or later.
    NotWritten,
    /// Perhaps written: it was sent and no definite answer came.
    Unknown,
}

/// A record without acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryError {
    /// Whether it can be in the log.
    pub kind: NotDelivered,
    /// The code of the last answer, if any came.
    pub code: Option<ErrorCode>,
    /// What failed and why.
    pub message: Arc<str>,
}

impl DeliveryError {
    /// The code that the display ends with: of the last answer, else that of the outcome.
    #[must_use]
    pub fn shown_code(&self) -> ErrorCode {
        self.code.unwrap_or(match self.kind {
            NotDelivered::NotWritten => ErrorCode::NotWritten,
            NotDelivered::Unknown => ErrorCode::OutcomeUnknown,
        })
    }
}

impl fmt::Display for DeliveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.shown_code();
        let kind = match self.kind {
            NotDelivered::NotWritten => "not written",
            NotDelivered::Unknown => "outcome unknown",
        };
        write!(f, "{} [{kind}] ({code})", self.message)
    }
}

impl std::error::Error for DeliveryError {}
