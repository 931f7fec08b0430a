//! Kind Topic: a topic of a Cluster.
#![allow(unreachable_pub, reason = "the derive of the schema makes copies of the types")]
#![allow(clippy::duplicated_attributes, reason = "columns of one type")]

mod spec;
mod status;
mod validate;
mod wish;

pub use spec::{
    Adoption, CleanupPolicy, DeletionPolicy, Replication, Retention, RetentionBytes, RetentionTime, Topic,
    TopicOffload, TopicSpec,
};
pub use status::{EffectiveConfig, TopicStatus};
pub use validate::{Violation, validate};
pub use wish::TopicConfigWish;
pub(crate) use wish::wish;
