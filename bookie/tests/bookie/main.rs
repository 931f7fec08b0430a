//! A bookie in this process, over gRPC on loopback, with real disks and the quorum's own state machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp, reason = "a test")]

mod adds;
mod boot;
mod broker;
mod calls;
mod crashes;
mod fences;
mod gc;
mod limbo;
mod listing;
mod power;
mod quorum;
mod scrub;
mod sessions;
mod shelf;
mod space;
mod stop;
mod touch;
mod wait;
