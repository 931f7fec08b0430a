//! Kind ConsumerGroup: a consumer group of a Cluster.
#![allow(unreachable_pub, reason = "the derive of the schema makes copies of the types")]
#![allow(clippy::duplicated_attributes, reason = "columns of one type")]

mod report;
mod spec;
mod status;
mod validate;

pub use report::{GroupMemory, LagBucket, REPORT_MS, STEADY_MS, Steady};
pub use spec::{
    Assignment, ConsumerGroup, ConsumerGroupSpec, Delivery, GroupDeletionPolicy, GroupLimits, GroupMode,
    MemberPartitions, Reset, Strategy,
};
pub use status::{AssignmentStatus, ConsumerGroupStatus, LastReset};
pub(crate) use validate::parse_partition;
pub use validate::{parse_position, validate};
