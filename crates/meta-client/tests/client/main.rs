//! The client over gRPC, against the real state machine behind a member that loses answers when it is told to.
#![allow(clippy::unwrap_used, reason = "helpers of tests: a failure is the test's failure")]

mod member;
mod proposals;
mod sessions;
mod watching;
