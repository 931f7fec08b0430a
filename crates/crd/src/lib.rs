//! Custom resources of Tidemill (Cluster, Topic, ConsumerGroup) and the pure plan of topics and groups.
//!
//! ```text
//! shared     conditions and the verdict table, cluster references, sizes, durations, parts of pod templates
//! cluster    kind Cluster
//! topic      kind Topic, and what the data plane is asked for
//! group      kind ConsumerGroup
//! structure  whether a manifest has the form of its definition
//! plan       what there is to do for a Topic or a ConsumerGroup
//! wire       between plans and messages of the cluster's interface
//! generate   the definitions as an API server wants them: crds/*.yaml is written from here
//! ```
//!
//! Nothing here does I/O. The schema, its defaults and its CEL rules are derived from the types; what a derive cannot say is
//! added by [`generate`].

pub mod cluster;
pub mod generate;
pub mod group;
pub mod plan;
mod shared;
pub mod structure;
pub mod topic;
pub mod wire;

pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use group::{ConsumerGroup, ConsumerGroupSpec, ConsumerGroupStatus};
pub use shared::{
    ClusterRef, Condition, ConditionChange, Duration, LocalRef, Outcome, ParseError, PodTemplate, Quantity,
    Resources, Toleration, Verdict, apply_conditions, find, is_true,
};
pub use topic::{Topic, TopicSpec, TopicStatus};

/// API group of all kinds.
pub const GROUP: &str = "tidemill.dev";
/// Served and stored version of all kinds.
pub const VERSION: &str = "v1alpha1";
