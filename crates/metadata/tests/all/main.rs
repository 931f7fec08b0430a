//! The state machine from outside: every command with every precondition, random sequences, golden bytes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, outside of test functions")]

mod boot;
mod chain;
mod close;
mod compact;
mod control;
mod corpus;
mod golden;
mod groups;
mod harness;
mod ledgers;
mod members;
mod ownership;
mod queries;
mod random;
mod repair;
mod sessions;
mod size;
mod snapshot;
mod topics;
