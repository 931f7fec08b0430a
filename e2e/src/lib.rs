//! Real processes: clusters of `tidemill up --processes` on loopback, killed, frozen and restarted one member at a time.
//!
//! The binary is the one that stands beside the test's own folder in the target directory, or the one that `TIDEMILL_BIN`
//! names. Every cluster lives in a temporary directory and is ended when its value is dropped.
//!
//! [`kube`] is for the tests on Kubernetes.

mod cluster;
mod command;
mod http;
pub mod kube;
mod load;
mod members;
mod mount;
mod repairs;
mod replicas;

pub use cluster::{Cluster, Options};
pub use command::{Finished, binary, full, run, tidemill};
pub use http::{get, request};
pub use load::{Load, Sent, check, client, read_all};
pub use repairs::{bookie_id, declare_lost, repaired, retire};
pub use replicas::{Compared, compare_replicas};
