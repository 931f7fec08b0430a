//! Between plans and messages of the cluster's interface; the same for the operator and for the command line.

pub mod group;
pub mod topic;
