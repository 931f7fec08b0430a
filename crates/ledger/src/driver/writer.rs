//! The handle of an open ledger.

use bytes::Bytes;
use tidemill_types::{BookieId, EntryId, LedgerId, LedgerRecord};
use tokio::sync::{mpsc, watch};

use crate::{AppendHandle, AppendRefused, BarrierError, CloseError, CloseTicket};

/// What a writer tells its partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterEvent {
    /// Somebody fenced, recovers or closed the ledger: nothing more is acknowledged from it (1.3 step 4).
    Fenced,
    /// This member does not answer and no spare is there; the ledger goes on with the others (R28).
    Degraded(BookieId),
    /// All members have everything again.
    Restored,
    /// The ledger should be rolled soon: copies were given up, or too many ensemble changes.
    RollWanted,
}

/// An entry that was not acknowledged, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingEntry {
    /// Its id in this ledger.
    pub entry: EntryId,
    /// Its envelope.
    pub envelope: Bytes,
    /// Its body.
    pub body: Bytes,
}

/// Adds entries to one ledger. Cheap to clone; all clones are the one writer.
#[derive(Clone)]
pub struct LedgerWriter {
    _private: (),
}

impl LedgerWriter {
    /// The ledger.
    #[must_use]
    pub fn ledger(&self) -> LedgerId {
        todo!()
    }

    /// The record as this writer last knows it (own ensemble changes included).
    #[must_use]
    pub fn record(&self) -> LedgerRecord {
        todo!()
    }

    /// Adds an entry and sends it to the whole ensemble. Never waits.
    ///
    /// # Errors
    /// [`AppendRefused`]: the entry stands in no ledger.
    pub fn append(&self, _envelope: Bytes, _body: &[Bytes]) -> Result<AppendHandle, AppendRefused> {
        todo!()
    }

    /// Called with the new LAC after each batch of acknowledgements, in order, on the connection's task: be quick,
    /// do not call back into the writer from it. Set it before the first append.
    pub fn on_ack(&self, _callback: Box<dyn Fn(EntryId) + Send + Sync>) {
        todo!()
    }

    /// Last add confirmed: it and all before it are acknowledged for ever.
    #[must_use]
    pub fn lac(&self) -> EntryId {
        todo!()
    }

    /// The LAC as it moves.
    #[must_use]
    pub fn watch_lac(&self) -> watch::Receiver<EntryId> {
        todo!()
    }

    /// The id that the next entry gets.
    #[must_use]
    pub fn next_entry(&self) -> EntryId {
        todo!()
    }

    /// Envelope and body bytes of all entries appended so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        todo!()
    }

    /// Bytes of entries that are not acknowledged yet.
    #[must_use]
    pub fn in_flight_bytes(&self) -> u64 {
        todo!()
    }

    /// Events from now on. One receiver per writer: a second call takes over.
    #[must_use]
    pub fn events(&self) -> mpsc::UnboundedReceiver<WriterEvent> {
        todo!()
    }

    /// Stops pushing: the end is the LAC of the moment at which this resolves (it waits for an ensemble change that is
    /// under way), nothing above it is acknowledged any more, barriers are void. Append the `index` entry and await it
    /// before, if there is to be one.
    ///
    /// # Errors
    /// [`CloseError`].
    pub async fn begin_close(&self) -> Result<CloseTicket, CloseError> {
        todo!()
    }

    /// Proves that the ledger was not fenced when this was called: an entry sent now reached Qa (metadata, Sessions).
    ///
    /// # Errors
    /// [`BarrierError`].
    pub async fn barrier(&self, _envelope: Bytes) -> Result<(), BarrierError> {
        todo!()
    }

    /// Entries that are not acknowledged, in order.
    #[must_use]
    pub fn pending(&self) -> Vec<PendingEntry> {
        todo!()
    }

    /// After this ledger was closed with `end` by a recovery whose close is stored: resolves the handles up to `end` as
    /// written, the others as not written, and returns the latter in order, to be added to the next ledger (1.3 step 4).
    #[must_use]
    pub fn resolve(&self, _end: EntryId) -> Vec<PendingEntry> {
        todo!()
    }

    /// The partition was dropped: pending handles resolve with outcome unknown, nothing more is sent.
    pub fn abandon(&self) {
        todo!()
    }
}
