//! Members of the quorum in one process, over loopback, on the real file system.

mod common;
mod leader;
mod members;
mod sessions;
mod single;
mod watch;
