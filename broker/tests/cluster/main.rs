//! Brokers with a real quorum and real bookies, all in this process, spoken to over gRPC.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp, reason = "a test")]

mod bad_input;
mod control;
mod failover;
mod harness;
mod hostile;
mod huge;
mod life;
mod raw;
mod round_trip;
mod stream;
