//! A partition: a chain of ledgers with one owner at a time.
//!
//! [`PartitionLog`] is what a broker holds for each partition that it owns: take-over, idempotent produce, rolling,
//! barriers, reads from the tail cache and from bookies. The protocol stands in `docs/protocol/partition-log.md`, the
//! bytes in front of every entry in `docs/formats/envelope.md`. Rules of the ledger protocol are named by their numbers
//! (`R10`, `1.8`), those of the layers above as `2.1`.

mod cache;
pub mod compaction;
mod config;
mod context;
pub mod envelope;
mod error;
pub mod index;
mod partition;
pub mod producers;
pub mod retention;
mod types;

pub use config::{PartitionLogConfig, roll_bytes, roll_ms};
pub use context::{LogContext, OwnerSession, PartitionMeta};
pub use error::{FetchError, ProduceError, WriteOutcome};
pub use partition::{PartitionLog, ProduceHandle, Reservation};
pub use types::{
    BatchOutcome, CompactionCounters, CompactionStatus, Description, Gap, GapKind, ListedOffset, LogCounters,
    LogState, OffsetSpec, ProduceOutcome, ReadResult, StoredBatch,
};
