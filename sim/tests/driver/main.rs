//! The ledger client's driver over bookies and metadata in this process, in paused time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "a test"
)]

mod closing;
mod fake;
mod reading;
mod recovering;
mod wire;
mod writing;
