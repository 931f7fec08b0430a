//! The controllers: watch, observe, plan, apply, say.

pub mod cluster;
mod echo;
mod errors;
pub(crate) mod events;
mod finalizer;
pub mod group;
mod parent;
mod status;
pub mod topic;

use std::time::Duration;

use rand::RngExt;

pub use errors::PassError;

/// Between two tries of what the API server denied: rights change by a person.
const DENIED: Duration = Duration::from_secs(60);

/// Plus or minus a fifth, so that objects made together are not looked at together for ever.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(rand::rng().random_range(0.8..1.2))
}
