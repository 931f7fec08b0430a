//! Members of the quorum in one process, over loopback, on the real file system.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;
mod leader;
mod members;
mod sessions;
mod single;
mod watch;
