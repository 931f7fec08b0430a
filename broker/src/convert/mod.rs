//! Between the types of the wire and ours.

pub(crate) mod config;
pub(crate) mod ledger;
pub(crate) mod member;
pub(crate) mod record;
pub(crate) mod topic;
