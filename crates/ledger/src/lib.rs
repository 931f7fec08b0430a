//! Replicated-ledger client: writer, reader, recovery.
//!
//! The protocol stands in `docs/protocol/ledger.md`; rules are named in the code by their numbers (`R10`).

pub mod core;
mod driver;
mod error;
mod meta;
pub mod transport;

pub use driver::{
    AppendHandle, CloseTicket, Closed, CommitError, EntryHead, LedgerClient, LedgerConfig, LedgerReader,
    LedgerWriter, PendingEntry, Recovered, RecoveredEnd, WriterEvent,
};
pub use error::{AppendError, AppendRefused, BarrierError, CloseError, ReadError, RecoverError};
pub use meta::{BookieInfo, BookieTable, LedgerMeta, MetaError};
