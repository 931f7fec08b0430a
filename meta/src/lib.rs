//! A member of the metadata quorum: raft log and snapshots on disk, raft between members, the service that brokers and
//! bookies speak to, and the duties of the leader.
//!
//! ```text
//! service ── propose ──> raft ──> log (fsync) ──> followers' logs ──> apply ──> machine ──> watches
//!    │                                                                   │
//!    └── read, renew ──> leadership check (ReadIndex, one serves all) ───┘
//! lead: session keeper, quorum time, bookie reports, planner; only on the leader, one term at a time
//! ```
//!
//! [`start`] runs a member in this process. Nothing of openraft is public.

mod check;
mod config;
mod counters;
mod error;
mod identity;
mod lead;
mod log;
mod machine;
mod network;
mod node;
mod server;
mod service;
mod start;
mod types;

pub use config::MetaConfig;
pub use error::MetaStartError;
pub use log::recode;
pub use start::{MetaHandle, start, start_on};
