//! Whole clusters in one process: quorum, bookies, brokers and clients as they are in production, on a simulated network, simulated disks
//! and simulated clocks. One seed is one run (docs/safety.md).

mod clients;
pub mod clock;
pub mod hosts;
pub mod load;
pub mod plan;
pub mod run;
pub mod settle;
pub mod sometimes;
pub mod trace;
pub mod world;

use std::{cell::Cell, time::Duration};

thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Simulated time since the start of the run, as of the last step.
#[must_use]
pub fn now() -> Duration {
    NOW.get()
}

/// The run comes to this time.
pub(crate) fn set_now(at: Duration) {
    NOW.set(at);
}
