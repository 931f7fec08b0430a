//! The future of one append.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tidemill_types::EntryId;

use super::writer::WriterShared;
use crate::AppendError;

/// Resolves when the entry is acknowledged (in order of entry ids) or its fate is known. Costs nothing until polled; one
/// task may wait for it.
#[must_use]
pub struct AppendHandle {
    writer: Arc<WriterShared>,
    entry: EntryId,
}

impl AppendHandle {
    pub(crate) fn new(writer: Arc<WriterShared>, entry: EntryId) -> Self {
        Self { writer, entry }
    }

    /// The entry's id, known at once.
    #[must_use]
    pub fn entry(&self) -> EntryId {
        self.entry
    }
}

impl fmt::Debug for AppendHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AppendHandle({}/{})", self.writer.ledger, self.entry)
    }
}

impl Future for AppendHandle {
    type Output = Result<(), AppendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.writer.poll_outcome(self.entry, cx.waker()) {
            Some(o) => Poll::Ready(o),
            None => Poll::Pending,
        }
    }
}
