//! The cores driven by tokio: connections, timers, metadata calls, handles.

mod client;
mod close;
mod commands;
mod explicit_lac;
mod fences;
mod handle;
mod judge;
mod ledger_writer;
mod link;
mod read;
mod read_times;
mod recover;
mod shared;
mod write_backs;
mod writer;

pub use client::{LedgerClient, LedgerConfig};
pub use close::{CloseTicket, Closed, CommitError};
pub use handle::AppendHandle;
pub use ledger_writer::LedgerWriter;
pub use read::{EntryHead, LedgerReader};
pub use recover::{Recovered, RecoveredEnd};
pub use writer::{PendingEntry, WriterEvent};
