//! What there is to do for a Topic or a ConsumerGroup: pure, the same for the operator and for `tidemill apply`.
//!
//! ```text
//! observe ──> plan_topic / plan_group ──> actions, verdict (the table), conditions ──> apply
//! ```
//!
//! A plan is a function of the object and of what was seen. Carrying its actions out and planning again gives no action (tested
//! against the quorum's own state machine). What it cannot know, because somebody else may have been faster, the quorum judges:
//! a refusal of its is turned into a verdict by [`refused`].

mod gate;
mod group;
mod refusal;
mod topic;

pub use gate::ClusterGate;
pub use group::{
    GroupAction, GroupObject, GroupObserved, GroupPlan, GroupSeen, GroupWish, TopicPartition, plan_group,
    shown_assignor, shown_start,
};
pub use refusal::{Refusal, refused};
pub use topic::{
    Claim, Tombstone, TopicAction, TopicObject, TopicObserved, TopicPlan, TopicSeen, plan_topic,
};

/// The owner's name of a claim: `Topic NAMESPACE/NAME`.
#[must_use]
pub fn owner(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind} {namespace}/{name}")
}

/// The uid under which `tidemill apply` claims: the same from wherever a manifest is applied.
#[must_use]
pub fn manifest_uid(namespace: &str, name: &str) -> String {
    format!("manifest:{namespace}/{name}")
}
