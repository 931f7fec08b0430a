//! Kind Cluster: a whole Tidemill cluster on Kubernetes.
#![allow(unreachable_pub, reason = "the derive of the schema makes copies of the types")]
#![allow(clippy::duplicated_attributes, reason = "columns of one type")]

mod defaults;
mod spec;
mod status;
mod storage;
mod updates;

pub use defaults::{default_brokers, default_meta};
pub use spec::{
    Access, BookiePool, Brokers, Cluster, ClusterSpec, Listener, ListenerTls, Meta, Offload,
    OffloadCredentials, Placement, TopicDefaults,
};
pub use status::{ClusterStatus, Endpoint, MemberStatus, PlanStatus, PlanStep, PoolStatus};
pub use storage::{Storage, StoragePolicy, WhenDeleted};
pub use updates::{UpdateStrategy, Updates, Weekday, Window};
