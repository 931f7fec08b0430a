//! The coordinator from outside: the bugs of other systems by name, replay equals state over random interleavings, golden
//! bytes.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

mod bugs;
mod declared;
mod golden;
mod harness;
mod membership;
mod offsets;
mod random;
