//! One file per operation; each checks everything before it writes anything.

mod boot;
mod cluster;
pub(crate) mod compact;
pub(crate) mod control;
mod create_ledger;
mod ensemble;
mod fragments;
mod group;
mod ledger_close;
mod link;
mod log_start;
mod member_state;
mod ownership;
mod recovery;
mod repair;
mod report;
mod session;
pub(crate) mod topic;
