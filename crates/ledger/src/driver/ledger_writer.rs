//! The handle of an open ledger.

use std::{sync::Arc, task::Waker};

use bytes::Bytes;
use tidemill_types::{EntryId, LedgerId, LedgerRecord};
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    AppendHandle, CloseTicket, PendingEntry, WriterEvent,
    writer::{Fate, WriterShared, pending},
};
use crate::{
    AppendRefused, BarrierError, CloseError,
    core::writer::{AddRefused, CloseRefused},
};

/// Adds entries to one ledger. Cheap to clone; all clones are the one writer.
#[derive(Clone)]
pub struct LedgerWriter {
    pub(crate) shared: Arc<WriterShared>,
}

impl LedgerWriter {
    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> LedgerId {
        self.shared.ledger
    }

    /// The record as this writer last knows it (own ensemble changes included).
    #[must_use]
    pub fn record(&self) -> LedgerRecord {
        self.shared.inner.lock().core.record().clone()
    }

    /// Adds an entry and sends it to the whole ensemble. Never waits.
    ///
    /// # Errors
    /// [`AppendRefused`]: the entry stands in no ledger.
    pub fn append(&self, envelope: &[u8], body: &[Bytes]) -> Result<AppendHandle, AppendRefused> {
        self.append_shared(envelope, body).map(|(entry, _)| AppendHandle::new(self.shared.clone(), entry))
    }

    /// [`LedgerWriter::append`] for a caller that keeps what it wrote: the entry's id, and its body as encoded, which is one
    /// allocation of its own length. The parts in `body` may be slices of much larger buffers; who keeps this instead lets them go.
    ///
    /// # Errors
    /// As [`LedgerWriter::append`].
    pub fn append_shared(&self, envelope: &[u8], body: &[Bytes]) -> Result<(EntryId, Bytes), AppendRefused> {
        let ledger = self.ledger();
        let added = self.shared.with(|i, out| {
            if i.fate != Fate::Open {
                return Err(AddRefused::Stopped);
            }
            let lac = i.core.lac();
            let entry = i.core.add(envelope, body, out)?;
            i.explicit.carries(lac);
            Ok((entry, i.core.last_body().unwrap_or_default()))
        });
        match added {
            Ok(added) => Ok(added),
            Err(AddRefused::Stopped) => Err(AppendRefused::Stopped(ledger)),
            Err(AddRefused::Closing) => Err(AppendRefused::Closing(ledger)),
            Err(AddRefused::Entry(e)) => Err(AppendRefused::Entry(e)),
        }
    }

    /// Called with the new LAC after each batch of acknowledgements, in order, under the writer's lock: be quick and do not
    /// call back into the writer from it. The first callback stays.
    pub fn on_ack(&self, callback: Box<dyn Fn(EntryId) + Send + Sync>) {
        let _ = self.shared.on_ack.set(callback);
    }

    /// Last add confirmed: it and all before it are acknowledged for ever.
    #[must_use]
    pub fn lac(&self) -> EntryId {
        *self.shared.lac.borrow()
    }

    /// The LAC as it moves.
    #[must_use]
    pub fn watch_lac(&self) -> watch::Receiver<EntryId> {
        self.shared.lac.subscribe()
    }

    /// The id that the next entry gets.
    #[must_use]
    pub fn next_entry(&self) -> EntryId {
        self.shared.inner.lock().core.next_entry()
    }

    /// Envelope and body bytes of all entries appended so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.shared.inner.lock().core.length()
    }

    /// Bytes of entries that are not acknowledged yet.
    #[must_use]
    pub fn in_flight_bytes(&self) -> u64 {
        self.shared.inner.lock().core.in_flight_bytes()
    }

    /// Events from now on. One receiver per writer: a second call takes over.
    #[must_use]
    pub fn events(&self) -> mpsc::UnboundedReceiver<WriterEvent> {
        let (tx, rx) = mpsc::unbounded_channel();
        let mut i = self.shared.inner.lock();
        if i.core.is_fenced() {
            let _ = tx.send(WriterEvent::Fenced);
        }
        i.events = Some(tx);
        rx
    }

    /// Whether the ledger was fenced by somebody.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.shared.inner.lock().core.is_fenced()
    }

    /// Stops pushing: the end is the LAC of the moment at which this resolves (it waits for an ensemble change that is
    /// under way), nothing above it is acknowledged any more, barriers are void. Append the `index` entry and await it
    /// before, if there is to be one.
    ///
    /// # Errors
    /// [`CloseError`].
    pub async fn begin_close(&self) -> Result<CloseTicket, CloseError> {
        let (tx, ready) = oneshot::channel();
        let begun = self.shared.with(|i, out| {
            let r = i.core.begin_close(out);
            if r.is_ok() {
                i.close_ready = Some(tx);
            }
            r
        });
        match begun {
            Err(CloseRefused::Fenced) => return Err(CloseError::Fenced),
            Err(CloseRefused::AlreadyClosing) => return Err(CloseError::AlreadyClosing),
            Ok(()) => {}
        }
        ready.await.map_err(|_| CloseError::Fenced)?;
        let end = self.shared.inner.lock().core.close_end();
        let (last, length) = end.ok_or(CloseError::Fenced)?;
        // Those who wait for a barrier above the end learn that it is void.
        let wake = std::mem::take(&mut self.shared.inner.lock().wakers);
        wake.into_values().for_each(Waker::wake);
        Ok(CloseTicket::new(self.shared.clone(), last, length))
    }

    /// Proves that the ledger was not fenced when this was called: an entry sent now reached Qa (metadata, Sessions).
    ///
    /// # Errors
    /// [`BarrierError`].
    pub async fn barrier(&self, envelope: &[u8]) -> Result<(), BarrierError> {
        let handle = self.append(envelope, &[]).map_err(|e| match e {
            AppendRefused::Stopped(_) => BarrierError::Stopped,
            AppendRefused::Closing(_) => BarrierError::Voided,
            AppendRefused::Entry(e) => BarrierError::Entry(e),
        })?;
        let entry = handle.entry();
        std::future::poll_fn(|cx| {
            let mut i = self.shared.inner.lock();
            if entry <= i.core.lac() {
                return std::task::Poll::Ready(Ok(()));
            }
            if i.core.is_stopped() || i.fate != Fate::Open {
                return std::task::Poll::Ready(Err(BarrierError::Stopped));
            }
            if i.core.close_end().is_some() {
                return std::task::Poll::Ready(Err(BarrierError::Voided));
            }
            i.wakers.insert(entry, cx.waker().clone());
            std::task::Poll::Pending
        })
        .await
    }

    /// Entries that are not acknowledged, in order.
    #[must_use]
    pub fn pending(&self) -> Vec<PendingEntry> {
        pending(&self.shared.inner.lock().core, EntryId::NONE)
    }

    /// After this ledger was closed with `end` by a recovery whose close is stored: resolves the handles up to `end` as
    /// written, the others as not written, and returns the latter in order, to be added to the next ledger (1.3 step 4).
    #[must_use]
    pub fn resolve(&self, end: EntryId) -> Vec<PendingEntry> {
        self.shared.with(|i, out| i.core.set_fenced(out));
        self.shared.set_end(end)
    }

    /// The partition was dropped: pending handles resolve with outcome unknown, nothing more is sent or acknowledged.
    pub fn abandon(&self) {
        self.shared.with(|i, out| {
            i.core.set_fenced(out);
            if i.fate == Fate::Open {
                i.fate = Fate::Abandoned;
            }
        });
        let wake = std::mem::take(&mut self.shared.inner.lock().wakers);
        wake.into_values().for_each(Waker::wake);
    }
}
