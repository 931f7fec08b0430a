//! What the cluster said no to, as a verdict.

use tidemill_types::ErrorCode;

use crate::{Outcome, Verdict};

/// A refusal of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Code of `docs/errors`, such as `TOPIC_CLAIMED`; empty when nobody answered.
    pub code: String,
    /// For people.
    pub message: String,
    /// The same can succeed later.
    pub retryable: bool,
    /// Field that is wrong, if one is.
    pub field: String,
    /// What is allowed for it.
    pub allowed: String,
    /// Owner of the claim that stands against it.
    pub held_by: Option<String>,
}

/// The verdict of an object whose wish was refused.
#[must_use]
pub fn refused(r: &Refusal) -> Verdict {
    let message = match &r.held_by {
        Some(owner) if !owner.is_empty() && !r.message.contains(owner.as_str()) => {
            format!("{} (held by {owner})", r.message)
        }
        _ if !r.field.is_empty() && !r.allowed.is_empty() => {
            format!("{}: {} (allowed: {})", r.field, r.message, r.allowed)
        }
        _ if !r.field.is_empty() => format!("{}: {}", r.field, r.message),
        _ => r.message.clone(),
    };
    let rejected = |reason: &str| Verdict::new(Outcome::Rejected, reason, message.clone());
    match ErrorCode::from_wire(&r.code) {
        Some(ErrorCode::TopicClaimed) if r.held_by.as_deref().is_some_and(|o| !o.is_empty()) => {
            rejected("Conflict")
        }
        Some(ErrorCode::TopicClaimed | ErrorCode::TopicExists) => rejected("Exists"),
        Some(ErrorCode::GroupClaimed) => rejected("Conflict"),
        Some(ErrorCode::GroupNotEmpty) => Verdict::new(Outcome::Working, "WaitingForEmptyGroup", message),
        // It is waited for: the group may be declared before its topics.
        Some(ErrorCode::UnknownTopic) => Verdict::new(Outcome::Working, "WaitingForTopic", message),
        Some(ErrorCode::TopicTombstoned) => rejected("Tombstoned"),
        Some(ErrorCode::TopicNotEmpty) => Verdict::new(Outcome::Working, "NotEmpty", message),
        Some(ErrorCode::UnknownConfigKey | ErrorCode::Unsupported) => rejected("Unsupported"),
        Some(ErrorCode::InvalidArgument | ErrorCode::InvalidTopicName | ErrorCode::InvalidGroupName) => {
            rejected("InvalidSpec")
        }
        // This operator has lost its lead; the one that has it writes the next verdict.
        Some(ErrorCode::StaleOperatorEpoch) => Verdict::new(Outcome::Retrying, "StaleOperator", message),
        Some(ErrorCode::FeatureLevelTooLow) => Verdict::new(Outcome::Working, "WaitingForUpgrade", message),
        Some(code) if !code.retryable() && !r.retryable => {
            Verdict::new(Outcome::Rejected, "Refused", format!("{message} ({code})"))
        }
        _ => Verdict::new(Outcome::Retrying, "ClusterUnavailable", message),
    }
}
