//! Partition logs over the real ledger client, the quorum's real state machine, and bookies in this process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod barrier;
mod bookies;
mod cluster;
mod compaction;
mod compaction_faults;
mod fencing;
mod history;
mod known_bugs;
mod outcomes;
mod produce;
mod quorum;
mod reading;
mod retention;
mod rolling;
mod stress;
mod take_over;
