//! What the clones of a writer's handle share: the core under its lock, and what follows from each of its steps.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, atomic::Ordering},
    task::Waker,
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_types::{BookieId, EntryId, LedgerId, LedgerRecord};
use tokio::sync::{mpsc, oneshot, watch};

use super::{commands, link::Link, shared::Shared};
use crate::{
    AppendError,
    core::{
        Rules,
        explicit_lac::ExplicitLac,
        writer::{CloseState, Input, Output, WriterCore},
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
pub(crate) enum Fate {
    /// Not known yet.
    Open,
    /// The ledger is closed here: written up to it, not above.
    End(EntryId),
    /// The partition was dropped.
    Abandoned,
}

pub(crate) struct Inner {
    pub(crate) core: WriterCore,
    pub(crate) fate: Fate,
    pub(crate) wakers: BTreeMap<EntryId, Waker>,
    pub(crate) events: Option<mpsc::UnboundedSender<WriterEvent>>,
    pub(crate) close_ready: Option<oneshot::Sender<()>>,
    /// The last settlement of the close that the core told.
    pub(crate) settled: Option<CloseState>,
    /// Links of the members with the bytes reported to them.
    links: Vec<(Arc<Link>, u64)>,
    roll_wanted: bool,
    /// What the bookies know of the LAC.
    pub(crate) explicit: ExplicitLac,
    /// Reused, so that an append allocates nothing but its entry.
    scratch: Vec<Output>,
}

pub(crate) struct WriterShared {
    pub(crate) ledger: LedgerId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inner: Mutex<Inner>,
    pub(crate) lac: watch::Sender<EntryId>,
    pub(crate) on_ack: OnceLock<Box<dyn Fn(EntryId) + Send + Sync>>,
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
                explicit: ExplicitLac::default(),
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
                Output::Degraded(b) => {
                    tracing::debug!(target: "tidemill_rare", "ledger degraded");
                    i.tell(WriterEvent::Degraded(b));
                }
                Output::Restored(b) => {
                    tracing::debug!(target: "tidemill_rare", "degraded ledger made whole");
                    i.tell(WriterEvent::Restored(b));
                }
                Output::RollWanted => i.want_roll(),
                Output::Divergent(bookie, entry) => {
                    tracing::error!(ledger = self.ledger.0, entry = entry.0, %bookie, "copies differ (R24)");
                }
                Output::VoidAnswer => {
                    tracing::debug!(target: "tidemill_rare", "answer to a void attempt dropped");
                }
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
                Output::MembersChanged => {
                    tracing::debug!(target: "tidemill_rare", "ensemble changed");
                    self.relink();
                }
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

    /// The LAC that the bookies should be told now (1.7). None once the ledger is fenced or closed: its end is told otherwise.
    pub(crate) fn lac_due(&self, now: Duration, delay: Duration) -> Option<EntryId> {
        let mut i = self.inner.lock();
        if i.core.is_stopped() || i.fate != Fate::Open {
            return None;
        }
        let lac = i.core.lac();
        i.explicit.due(lac, now, delay)
    }

    pub(crate) fn lac_not_told(&self, lac: EntryId) {
        self.inner.lock().explicit.failed(lac);
    }

    pub(crate) fn ack_quorum(&self) -> u8 {
        self.inner.lock().core.record().ack_quorum
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

pub(crate) fn pending(core: &WriterCore, above: EntryId) -> Vec<PendingEntry> {
    core.pending()
        .filter(|e| e.header().entry > above)
        .map(|e| PendingEntry { entry: e.header().entry, envelope: e.envelope(), body: e.body() })
        .collect()
}
