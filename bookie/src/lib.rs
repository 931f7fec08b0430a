//! Bookie: the storage role. Serves the ledgers on its disks over gRPC, proves its identity to the quorum, and collects
//! what the quorum no longer knows.
//!
//! ```text
//!            brokers
//!   data │            │ control
//!        ▼            ▼
//!   service/add   service/fence …     every request passes the gate: cluster, uuid, incarnation (R26)
//!        │            │
//!        │  touch ────┼──► quorum     first touch (R27)
//!        ▼            ▼
//!      tidemill-storage::Engine       one per bookie, one lane per disk
//!        ▲            ▲
//!       boot    gc, limbo, session ──► quorum
//! ```
//!
//! [`start`] binds the server, reads the disks and returns; the rest of the boot (R15, R16) goes on in the background until
//! the quorum answers. Meanwhile every call is answered `CODE_NOT_READY`.

mod acks;
mod boot;
mod codes;
pub mod collector;
mod config;
mod connection;
mod counters;
mod error;
mod gauges;
mod lac;
mod records;
mod server;
mod service;
mod shared;
mod space;
mod start;
mod tasks;
mod touch;

pub use config::BookieConfig;
pub use error::BookieError;
pub use start::{BookieHandle, start, start_on};
