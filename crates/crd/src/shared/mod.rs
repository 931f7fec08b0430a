//! What several kinds use.

mod condition;
mod duration;
mod pod;
mod quantity;
mod reference;
mod verdict;

pub use condition::{Condition, ConditionChange, apply_conditions, find, is_true};
pub use duration::Duration;
pub use pod::{PodTemplate, Resources, Toleration};
pub use quantity::Quantity;
pub use reference::{ClusterRef, LocalRef};
pub use verdict::{Outcome, Verdict};

/// A text that is no quantity or duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}")]
pub struct ParseError {
    /// What stood there.
    pub text: String,
    /// What is allowed.
    pub what: &'static str,
}
