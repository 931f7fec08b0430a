//! The controllers: watch, observe, plan, apply, say.

pub mod cluster;
mod errors;
pub(crate) mod events;
pub mod group;
pub mod topic;

use std::time::Duration;

use rand::RngExt;

pub use errors::PassError;

/// Plus or minus a fifth, so that objects made together are not looked at together for ever.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(rand::rng().random_range(0.8..1.2))
}
