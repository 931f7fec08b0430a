//! Members of the quorum in one process, over loopback, on the real file system.

mod common;
mod single;
