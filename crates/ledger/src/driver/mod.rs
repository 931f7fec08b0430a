//! The cores driven by tokio: connections, timers, metadata calls, handles.

mod client;
mod close;
mod handle;
mod read;
mod recover;
mod writer;

pub use client::{LedgerClient, LedgerConfig};
pub use close::CloseTicket;
pub use handle::AppendHandle;
pub use read::{EntryHead, LedgerReader};
pub use recover::{Recovered, RecoveredEnd};
pub use writer::{LedgerWriter, PendingEntry, WriterEvent};
