//! The handle of an open ledger.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, atomic::Ordering},
    task::Waker,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_types::{BookieId, EntryId, LedgerId, LedgerRecord};
use tokio::sync::{mpsc, oneshot, watch};

use super::{AppendHandle, CloseTicket, commands, link::Link, shared::Shared};
use crate::{
    AppendError, AppendRefused, BarrierError, CloseError,
    core::{
        Rules,
        writer::{AddRefused, CloseRefused, CloseState, Input, Output, WriterCore},
    },
};

/// What a writer tells its partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterEvent {
    /// Somebody fenced, recovers or closed the ledger: nothing more is acknowledged from it (1.3 step 4).
    Fenced,
    /// This member does not answer and no spare is there; the ledger goes on with the others (R28).
    Degraded(BookieId),
    /// This member has everything again.
    Restored(BookieId),
    /// The ledger should be rolled soon: copies were given up, too many ensemble changes, or a member is being emptied.
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

/// How the entries above the LAC ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not known yet.
    Open,
    /// The ledger is closed here: written up to it, not above.
    End(EntryId),
    /// The partition was dropped.
    Abandoned,
}

pub(crate) struct Inner {
    pub(crate) core: WriterCore,
    fate: Fate,
    wakers: BTreeMap<EntryId, Waker>,
    events: Option<mpsc::UnboundedSender<WriterEvent>>,
    close_ready: Option<oneshot::Sender<()>>,
    /// The last settlement of the close that the core told.
    pub(crate) settled: Option<CloseState>,
    /// Links of the members with the bytes reported to them.
    links: Vec<(Arc<Link>, u64)>,
    roll_wanted: bool,
    /// Reused, so that an append allocates nothing but its entry.
    scratch: Vec<Output>,
}

pub(crate) struct WriterShared {
    pub(crate) ledger: LedgerId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inner: Mutex<Inner>,
    lac: watch::Sender<EntryId>,
    on_ack: OnceLock<Box<dyn Fn(EntryId) + Send + Sync>>,
}

/// What has to happen after the lock is released.
#[derive(Default)]
struct After {
    lac: Option<EntryId>,
    wake: Vec<Waker>,
    commands: Vec<Output>,
}

impl WriterShared {
    pub(crate) fn open(shared: &Arc<Shared>, record: LedgerRecord) -> Arc<Self> {
        let ledger = record.id;
        let core = WriterCore::new(record, shared.config.max_ensemble_changes, Rules::default());
        let w = Arc::new(Self {
            ledger,
            shared: shared.clone(),
            inner: Mutex::new(Inner {
                core,
                fate: Fate::Open,
                wakers: BTreeMap::new(),
                events: None,
                close_ready: None,
                settled: None,
                links: Vec::new(),
                roll_wanted: false,
                scratch: Vec::new(),
            }),
            lac: watch::Sender::new(EntryId::NONE),
            on_ack: OnceLock::new(),
        });
        shared.register(ledger, &w);
        w.relink();
        w
    }

    /// Follows the members: links, and which of them can be sent to.
    fn relink(self: &Arc<Self>) {
        let members = self.members();
        let links: Vec<Arc<Link>> = members.iter().map(|b| self.shared.link(*b)).collect();
        {
            let mut i = self.inner.lock();
            for (l, reported) in i.links.drain(..) {
                l.unacked.fetch_sub(reported, Ordering::Relaxed);
            }
            i.links = links.iter().map(|l| (l.clone(), 0)).collect();
        }
        self.steps(
            links.iter().filter_map(|l| {
                l.open().map(|incarnation| Input::BookieUp { bookie: l.bookie, incarnation })
            }),
        );
    }

    pub(crate) fn members(&self) -> Vec<BookieId> {
        self.inner.lock().core.unacknowledged().map(|(b, _)| b).collect()
    }

    pub(crate) fn step(self: &Arc<Self>, input: Input<'_>) {
        self.steps(std::iter::once(input));
    }

    pub(crate) fn steps<'a>(self: &Arc<Self>, inputs: impl Iterator<Item = Input<'a>>) {
        self.with(|i, out| {
            for input in inputs {
                i.core.step(input, out);
            }
        });
    }

    /// Runs `f` under the lock and does what the core wants.
    pub(crate) fn with<R>(self: &Arc<Self>, f: impl FnOnce(&mut Inner, &mut Vec<Output>) -> R) -> R {
        let mut after = After::default();
        let mut i = self.inner.lock();
        let mut out = std::mem::take(&mut i.scratch);
        let r = f(&mut i, &mut out);
        let now = self.shared.now();
        for o in out.drain(..) {
            match o {
                Output::Send { index, bookie, attempt, entry } => {
                    if let Some((l, _)) = i.links.iter().find(|(l, _)| l.bookie == bookie) {
                        l.send(self.ledger, index, attempt, &entry, now);
                    }
                }
                Output::Acknowledged { lac } => {
                    after.lac = Some(lac);
                    let above = i.wakers.split_off(&lac.next());
                    after.wake.extend(std::mem::replace(&mut i.wakers, above).into_values());
                }
                Output::CloseReady => {
                    if let Some(tx) = i.close_ready.take() {
                        let _ = tx.send(());
                    }
                }
                Output::CloseSettled(s) => i.settled = Some(s),
                Output::Fenced => {
                    i.close_ready = None;
                    i.tell(WriterEvent::Fenced);
                    // Barriers that wait are void.
                    after.wake.extend(std::mem::take(&mut i.wakers).into_values());
                }
                Output::Degraded(b) => i.tell(WriterEvent::Degraded(b)),
                Output::Restored(b) => i.tell(WriterEvent::Restored(b)),
                Output::RollWanted => i.want_roll(),
                Output::Divergent(bookie, entry) => {
                    tracing::error!(ledger = self.ledger.0, entry = entry.0, %bookie, "copies differ (R24)");
                }
                Output::VoidAnswer => {}
                o @ (Output::MembersChanged
                | Output::Propose(_)
                | Output::ChangeAborted
                | Output::ReadRecord
                | Output::ResendLater { .. }) => after.commands.push(o),
            }
        }
        // A resend of a whole backlog is rare: its room is given back.
        out.shrink_to(1024);
        i.scratch = out;
        i.report();
        if after.lac.is_some() {
            // Under the lock, so that the LAC never steps back for whoever watches.
            self.lac.send_replace(i.core.lac());
            if let Some(f) = self.on_ack.get() {
                f(i.core.lac());
            }
        }
        let capped =
            i.links.iter().any(|(l, _)| l.unacked.load(Ordering::Relaxed) > self.shared.config.unacked_cap);
        drop(i);
        for w in after.wake {
            w.wake();
        }
        if capped {
            self.shared.judge.notify_one();
        }
        self.run(after.commands);
        r
    }

    fn run(self: &Arc<Self>, outputs: Vec<Output>) {
        let mut resend = Vec::new();
        for o in outputs {
            match o {
                Output::MembersChanged => self.relink(),
                Output::ChangeAborted => self.shared.judge.notify_one(),
                Output::Propose(change) => commands::propose_change(self, change),
                Output::ReadRecord => commands::read_record(self),
                Output::ResendLater { index, attempt, entry, after } => {
                    resend.push((index, attempt, entry, after));
                }
                _ => {}
            }
        }
        commands::resend_later(self, resend);
    }

    /// The outcome of an entry, or `None` while it is open.
    pub(crate) fn outcome(&self, i: &Inner, entry: EntryId) -> Option<Result<(), AppendError>> {
        if entry <= i.core.lac() {
            return Some(Ok(()));
        }
        match i.fate {
            Fate::Open => None,
            Fate::End(end) if entry <= end => Some(Ok(())),
            Fate::End(_) => Some(Err(AppendError::NotWritten)),
            Fate::Abandoned => Some(Err(AppendError::Unknown)),
        }
    }

    pub(crate) fn poll_outcome(&self, entry: EntryId, waker: &Waker) -> Option<Result<(), AppendError>> {
        let mut i = self.inner.lock();
        let o = self.outcome(&i, entry);
        if o.is_none() {
            i.wakers.insert(entry, waker.clone());
        }
        o
    }

    /// Fixes the end and gives back what lies above it.
    pub(crate) fn set_end(&self, end: EntryId) -> Vec<PendingEntry> {
        let mut i = self.inner.lock();
        if i.fate == Fate::Open {
            i.fate = Fate::End(end);
        }
        let wake = std::mem::take(&mut i.wakers);
        let rest = pending(&i.core, end);
        drop(i);
        wake.into_values().for_each(Waker::wake);
        rest
    }

    pub(crate) fn want_roll(&self) {
        self.inner.lock().want_roll();
    }
}

impl Inner {
    fn tell(&mut self, e: WriterEvent) {
        if self.events.as_ref().is_some_and(|tx| tx.send(e).is_err()) {
            self.events = None;
        }
    }

    fn want_roll(&mut self) {
        if !self.roll_wanted {
            self.roll_wanted = true;
            self.tell(WriterEvent::RollWanted);
        }
    }

    /// Tells the links how many bytes their bookies owe this ledger.
    fn report(&mut self) {
        let stopped = self.core.is_stopped();
        for ((link, reported), (bookie, unacked)) in self.links.iter_mut().zip(self.core.unacknowledged()) {
            let unacked = if stopped || link.bookie != bookie { 0 } else { unacked };
            if unacked > *reported {
                link.unacked.fetch_add(unacked - *reported, Ordering::Relaxed);
            } else if unacked < *reported {
                link.unacked.fetch_sub(*reported - unacked, Ordering::Relaxed);
            }
            *reported = unacked;
        }
    }
}

impl Drop for WriterShared {
    fn drop(&mut self) {
        for (l, reported) in self.inner.get_mut().links.drain(..) {
            l.unacked.fetch_sub(reported, Ordering::Relaxed);
        }
        self.shared.unregister(self.ledger);
    }
}

fn pending(core: &WriterCore, above: EntryId) -> Vec<PendingEntry> {
    core.pending()
        .filter(|e| e.header().entry > above)
        .map(|e| PendingEntry { entry: e.header().entry, envelope: e.envelope(), body: e.body() })
        .collect()
}

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
        let ledger = self.ledger();
        let added = self.shared.with(|i, out| {
            if i.fate == Fate::Open { i.core.add(envelope, body, out) } else { Err(AddRefused::Stopped) }
        });
        match added {
            Ok(entry) => Ok(AppendHandle::new(self.shared.clone(), entry)),
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
