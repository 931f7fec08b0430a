//! What a refusal says of a batch: not written, or in doubt.

use std::sync::Arc;

use tidemill_types::ErrorCode;

use crate::producer::{DeliveryError, NotDelivered};

/// Codes with which a broker says that nothing of the batch was or will be written.
pub(super) fn says_not_written(code: Option<ErrorCode>) -> bool {
    use ErrorCode as C;
    matches!(
        code,
        Some(
            C::NotWritten
                | C::NotOwner
                | C::NoOwner
                | C::StaleEpoch
                | C::Overloaded
                | C::DiskFull
                | C::NotReady
                | C::UnknownTopic
                | C::TopicTombstoned
                | C::UnknownPartition
                | C::InvalidArgument
                | C::InvalidBatch
                | C::MessageTooLarge
                | C::InvalidTopicName
                | C::OutOfOrderSequence
                | C::UnknownProducer
                | C::ProducerFenced
                | C::Unsupported
                | C::WrongCluster
        )
    )
}

pub(super) fn failure(in_doubt: bool, code: Option<ErrorCode>, message: &str) -> DeliveryError {
    let kind = if in_doubt { NotDelivered::Unknown } else { NotDelivered::NotWritten };
    DeliveryError { kind, code, message: Arc::from(message) }
}
