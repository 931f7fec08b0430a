//! The broker: the stateless serving role. It owns partitions by session, answers clients, and keeps nothing on disk.
//!
//! ```text
//! clients ── gRPC ──> service::{producer, consumer, metadata, admin}
//!                        │ route: name → partition → log, or NOT_OWNER with the owner
//!                     ownership::Table (partitions of this session)
//!                        │ filled and emptied by ownership::manager, which follows the view of the quorum
//!                     PartitionLog ── ledgers ──> bookies
//!                        └─────────── quorum ───> metadata quorum (traits implemented in `quorum`)
//! ```
//!
//! What a user of the API sees is written in `docs/protocol/{produce,fetch,admin}.md`; how to run it in
//! `docs/ops/broker.md`.

mod compaction_metrics;
mod config;
mod convert;
mod core;
mod deadline;
mod error;
mod fault;
mod groups;
mod handle;
mod identity;
mod lifecycle;
mod limits;
mod metrics;
mod operator_epoch;
mod ownership;
mod quorum;
mod route;
mod server;
mod service;
mod typed;

pub use config::BrokerConfig;
pub use error::BrokerError;
pub use handle::{BrokerHandle, start, start_with};
pub use identity::member_id;
