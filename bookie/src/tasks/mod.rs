//! What a bookie does by itself while it serves.

mod gc;
mod limbo;
mod maintenance;
mod patrol;
mod repair;
mod scrub;
mod session;

pub(crate) use gc::run as gc;
pub(crate) use maintenance::run as maintain;
pub(crate) use patrol::run as patrol;
pub(crate) use repair::run as repair;
pub(crate) use scrub::{report as report_damage, run as scrub};
pub(crate) use session::{announce_restart, keep as keep_session};
