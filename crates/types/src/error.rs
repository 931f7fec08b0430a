//! Error codes that reach a user: stable names, what kind of status each maps to, and whether a retry can help.
//!
//! The meaning of each code for people stands in `docs/errors/`.

use std::fmt;

/// The gRPC status class that a code maps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusClass {
    /// The request itself is wrong.
    InvalidArgument,
    /// A range was left.
    OutOfRange,
    /// No such thing.
    NotFound,
    /// There already.
    AlreadyExists,
    /// Not in the state that the request needs.
    FailedPrecondition,
    /// A concurrent change won.
    Aborted,
    /// A limit was reached.
    ResourceExhausted,
    /// Try again.
    Unavailable,
    /// Out of time.
    DeadlineExceeded,
    /// Not offered.
    Unimplemented,
    /// Data is gone.
    DataLoss,
    /// A bug.
    Internal,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $wire:literal, $class:ident, $retry:literal;)*) => {
        /// A stable code. The wire name never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The wire name (the `reason` of `google.rpc.ErrorInfo`, domain `tidemill`).
            #[must_use]
            pub fn wire(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// The status class.
            #[must_use]
            pub fn class(self) -> StatusClass {
                match self { $(Self::$name => StatusClass::$class,)* }
            }

            /// Whether the same request can succeed later.
            #[must_use]
            pub fn retryable(self) -> bool {
                match self { $(Self::$name => $retry,)* }
            }

            /// The code with this wire name.
            #[must_use]
            pub fn from_wire(s: &str) -> Option<Self> {
                match s { $($wire => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// No topic of this name or id.
    UnknownTopic = "UNKNOWN_TOPIC", NotFound, false;
    /// The partition index is not below the topic's partition count.
    UnknownPartition = "UNKNOWN_PARTITION", OutOfRange, false;
    /// A topic of this name exists.
    TopicExists = "TOPIC_EXISTS", AlreadyExists, false;
    /// The topic name breaks the naming rule.
    InvalidTopicName = "INVALID_TOPIC_NAME", InvalidArgument, false;
    /// A field or flag has a value outside what is allowed.
    InvalidArgument = "INVALID_ARGUMENT", InvalidArgument, false;
    /// A configuration key that nobody knows.
    UnknownConfigKey = "UNKNOWN_CONFIG_KEY", InvalidArgument, false;
    /// A data directory cannot be used: it is missing, its rights do not suffice, or the disk refuses.
    BadDirectory = "BAD_DIRECTORY", InvalidArgument, false;
    /// A batch breaks the format (CRC, magic, counts, truncation).
    InvalidBatch = "INVALID_BATCH", InvalidArgument, false;
    /// A batch or message is above the limit.
    MessageTooLarge = "MESSAGE_TOO_LARGE", InvalidArgument, false;
    /// This broker does not own the partition; the details name the owner.
    NotOwner = "NOT_OWNER", FailedPrecondition, true;
    /// Nobody owns the partition right now.
    NoOwner = "NO_OWNER", Unavailable, true;
    /// The request's epoch is older than the broker's or the broker's is older than the request's.
    StaleEpoch = "STALE_EPOCH", FailedPrecondition, true;
    /// A record without a key for a topic that is compacted: nothing would say what it replaces.
    KeyRequired = "KEY_REQUIRED", InvalidArgument, false;
    /// The fetch offset is beyond the end.
    OffsetOutOfRange = "OFFSET_OUT_OF_RANGE", OutOfRange, false;
    /// The records were trimmed; the details give the log start.
    Trimmed = "TRIMMED", OutOfRange, false;
    /// No member, no committed offset and no configuration of this group.
    UnknownGroup = "UNKNOWN_GROUP", NotFound, false;
    /// The group name breaks the naming rule.
    InvalidGroupName = "INVALID_GROUP_NAME", InvalidArgument, false;
    /// The member is not in the group.
    UnknownMember = "UNKNOWN_MEMBER", FailedPrecondition, false;
    /// The member's epoch is not current, or the partition was assigned later than that.
    FencedMember = "FENCED_MEMBER", FailedPrecondition, false;
    /// Another live process uses the member id.
    MemberInUse = "MEMBER_IN_USE", AlreadyExists, false;
    /// Another live member uses the instance id.
    InstanceInUse = "INSTANCE_IN_USE", AlreadyExists, true;
    /// The operation needs a group without members.
    GroupNotEmpty = "GROUP_NOT_EMPTY", FailedPrecondition, false;
    /// Somebody else declared the group.
    GroupClaimed = "GROUP_CLAIMED", FailedPrecondition, false;
    /// Nothing of the request was written.
    NotWritten = "NOT_WRITTEN", Unavailable, true;
    /// The request may or may not have been written.
    OutcomeUnknown = "OUTCOME_UNKNOWN", Unavailable, true;
    /// A sequence gap of an idempotent producer.
    OutOfOrderSequence = "OUT_OF_ORDER_SEQUENCE", FailedPrecondition, false;
    /// A newer epoch of this producer id exists.
    ProducerFenced = "PRODUCER_FENCED", FailedPrecondition, false;
    /// No state for this producer id and the sequence is not 0.
    UnknownProducer = "UNKNOWN_PRODUCER", FailedPrecondition, false;
    /// The batch is a duplicate whose offset is no longer known.
    DuplicateSequence = "DUPLICATE_SEQUENCE", AlreadyExists, false;
    /// A memory or queue limit; the details carry a retry delay.
    Overloaded = "OVERLOADED", ResourceExhausted, true;
    /// Not enough writable bookies for the ack quorum.
    NotEnoughBookies = "NOT_ENOUGH_BOOKIES", ResourceExhausted, true;
    /// No bookie has room for new data.
    DiskFull = "DISK_FULL", ResourceExhausted, true;
    /// The metadata quorum did not answer.
    QuorumUnavailable = "QUORUM_UNAVAILABLE", Unavailable, true;
    /// The process is starting or draining.
    NotReady = "NOT_READY", Unavailable, true;
    /// The deadline passed.
    DeadlineExceeded = "DEADLINE_EXCEEDED", DeadlineExceeded, true;
    /// The request is for another cluster.
    WrongCluster = "WRONG_CLUSTER", FailedPrecondition, false;
    /// The request names another member or incarnation than the one that answers (R26).
    WrongMember = "WRONG_MEMBER", FailedPrecondition, true;
    /// The session of the caller is not live.
    SessionExpired = "SESSION_EXPIRED", FailedPrecondition, true;
    /// A precondition on a version, epoch or state did not hold.
    Conflict = "CONFLICT", Aborted, true;
    /// The ledger is fenced.
    Fenced = "FENCED", FailedPrecondition, false;
    /// No such ledger.
    UnknownLedger = "UNKNOWN_LEDGER", NotFound, false;
    /// No such bookie.
    UnknownBookie = "UNKNOWN_BOOKIE", NotFound, false;
    /// What the request names is in a state from which the wished one is not reached.
    WrongState = "WRONG_STATE", FailedPrecondition, false;
    /// Stored bytes failed their check.
    Corrupt = "CORRUPT", DataLoss, false;
    /// Copies of records are lost.
    DataLoss = "DATA_LOSS", DataLoss, false;
    /// Somebody else claims the topic, or it is there and may not be adopted.
    TopicClaimed = "TOPIC_CLAIMED", FailedPrecondition, false;
    /// The topic was deleted: it is a tombstone until its data is purged.
    TopicTombstoned = "TOPIC_TOMBSTONED", FailedPrecondition, false;
    /// The topic has records, and the deletion asked for none.
    TopicNotEmpty = "TOPIC_NOT_EMPTY", FailedPrecondition, false;
    /// Another operator acquired the epoch since.
    StaleOperatorEpoch = "STALE_OPERATOR_EPOCH", FailedPrecondition, false;
    /// The cluster's feature level does not allow it yet.
    FeatureLevelTooLow = "FEATURE_LEVEL_TOO_LOW", FailedPrecondition, false;
    /// The feature exists in the interface but not in this version.
    Unsupported = "UNSUPPORTED", Unimplemented, false;
    /// A bug in Tidemill.
    Internal = "INTERNAL", Internal, false;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wire())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names_are_unique_and_round_trip() {
        for &c in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_wire(c.wire()), Some(c));
        }
    }
}
