//! First touch (R27): before the first plain add to a ledger that the bookie does not hold, the quorum is asked whether the
//! ledger is OPEN and names this bookie in its last fragment. In limbo that is asked for every plain add; after the uuid was
//! declared lost, once per ledger and boot.
//!
//! ```text
//! add ──engine: "ask first"──> waiting[ledger] ──one linearizable read for all who wait──> OPEN, named: admit, add again
//!                                                                                    └──> anything else: Fenced
//!                                                                                    └──> no answer: unknown
//! ```
//!
//! The ticket is drawn before the read and handed in with the verdict: when the ledger was collected in between, the verdict
//! is void and the quorum is asked again. Whether it was fenced in between the engine checks with the add itself (R13).

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_runtime::defaults;
use tidemill_storage::{
    AckSink, AddKind, AddOutcome, AddRequest, Admission, Engine, FirstTouch, UnknownReason,
};
use tidemill_types::{BookieId, LedgerId, LedgerRecord, LedgerState};
use tokio::{runtime::Handle, sync::Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{counters::Counters, records::Records};

/// The delay that is named when too many bytes wait for the quorum.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_millis(100);

/// A plain add that waits for the quorum's word.
pub(crate) struct Waiting {
    /// Comes back with the answer.
    pub(crate) request: u64,
    /// The encoded entry.
    pub(crate) entry: Bytes,
    /// Where the answer goes.
    pub(crate) sink: Arc<dyn AckSink>,
}

/// All first touches of a bookie. Clones share them.
#[derive(Clone)]
pub(crate) struct Touches {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    bookie: BookieId,
    records: Arc<dyn Records>,
    reads: Semaphore,
    max_bytes: usize,
    bytes: AtomicUsize,
    /// Per ledger whose question is on its way: who waits.
    waiting: Mutex<HashMap<LedgerId, Vec<Waiting>>>,
    /// After the uuid was declared lost: ledgers that this boot has asked about. `None`: no need.
    asked: Option<Mutex<HashSet<LedgerId>>>,
    counters: Counters,
    stop: CancellationToken,
    runtime: Handle,
}

impl std::fmt::Debug for Touches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Touches").field("waiting", &self.inner.waiting.lock().len()).finish_non_exhaustive()
    }
}

/// Limits of [`Touches`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TouchLimits {
    /// Reads under way at once.
    pub(crate) reads: usize,
    /// Bytes that wait.
    pub(crate) bytes: usize,
}

impl Touches {
    /// Nothing waits. `was_lost`: the quorum had declared the uuid lost before this boot. To be called in the runtime that
    /// runs the reads.
    pub(crate) fn new(
        engine: Engine,
        bookie: BookieId,
        records: Arc<dyn Records>,
        limits: TouchLimits,
        was_lost: bool,
        counters: Counters,
        stop: CancellationToken,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                engine,
                bookie,
                records,
                reads: Semaphore::new(limits.reads),
                max_bytes: limits.bytes,
                bytes: AtomicUsize::new(0),
                waiting: Mutex::new(HashMap::new()),
                asked: was_lost.then(Mutex::default),
                counters,
                stop,
                runtime: Handle::current(),
            }),
        }
    }

    /// Whether plain adds may not even be tried before the quorum was asked.
    pub(crate) fn ask_always(&self) -> bool {
        self.inner.asked.is_some() || self.inner.engine.limbo()
    }

    /// Whether a plain add to this ledger may not even be tried before the quorum was asked.
    pub(crate) fn must_ask(&self, ledger: LedgerId) -> bool {
        self.inner.engine.limbo() || self.inner.asked.as_ref().is_some_and(|a| !a.lock().contains(&ledger))
    }

    /// The ledger was collected: what the quorum said about it counts no more.
    pub(crate) fn forget(&self, ledger: LedgerId) {
        if let Some(asked) = &self.inner.asked {
            asked.lock().remove(&ledger);
        }
    }

    /// Lets an add wait for the quorum's word. Does not block; may be called from any thread.
    pub(crate) fn ask(&self, ledger: LedgerId, add: Waiting) {
        let inner = &self.inner;
        let len = add.entry.len();
        let fits = |used: usize| (used == 0 || used + len <= inner.max_bytes).then_some(used + len);
        if inner.bytes.try_update(Ordering::AcqRel, Ordering::Acquire, fits).is_err() {
            add.sink.acked(vec![(add.request, AddOutcome::Overloaded { retry_after: RETRY_AFTER })]);
            return;
        }
        let mut waiting = inner.waiting.lock();
        if let Some(others) = waiting.get_mut(&ledger) {
            others.push(add);
            return;
        }
        waiting.insert(ledger, vec![add]);
        drop(waiting);
        let this = self.clone();
        inner.runtime.spawn(async move { this.run(ledger).await });
    }

    /// Asks until nobody waits for this ledger.
    async fn run(&self, ledger: LedgerId) {
        let inner = &self.inner;
        let mut again: Vec<Waiting> = Vec::new();
        loop {
            let permit = inner.reads.acquire().await;
            // Drawn before the read begins, so that a collection in between shows.
            let touch = inner.engine.first_touch(ledger);
            // Who waits by now came before the read begins and may share it.
            let mut batch = std::mem::take(&mut again);
            {
                let mut waiting = inner.waiting.lock();
                batch.append(&mut waiting.get_mut(&ledger).map(std::mem::take).unwrap_or_default());
                if batch.is_empty() {
                    waiting.remove(&ledger);
                    return;
                }
            }
            let read = tokio::time::timeout(defaults::ADD_TIMEOUT, inner.records.ledger(ledger));
            let record = tokio::select! {
                () = inner.stop.cancelled() => None,
                r = read => r.ok().and_then(Result::ok),
            };
            drop(permit);
            match record {
                None => {
                    inner.counters.first_touches_unknown.inc_by(batch.len() as u64);
                    self.answer(batch, &AddOutcome::Unknown(UnknownReason::Stopped));
                }
                Some(record) if takes_adds(record.as_ref(), inner.bookie) => {
                    match admit(&inner.engine, touch) {
                        Admission::Admitted => self.admitted(ledger, &batch),
                        Admission::Stale(_) => again = batch,
                    }
                }
                Some(_) => {
                    inner.counters.first_touches_refused.inc_by(batch.len() as u64);
                    tracing::debug!(target: "tidemill_rare", "first touch refused");
                    self.answer(batch, &AddOutcome::Fenced);
                }
            }
        }
    }

    fn admitted(&self, ledger: LedgerId, batch: &[Waiting]) {
        if let Some(asked) = &self.inner.asked {
            asked.lock().insert(ledger);
        }
        self.release(batch);
        for group in batch.chunk_by(|a, b| Arc::ptr_eq(&a.sink, &b.sink)) {
            let Some(first) = group.first() else { continue };
            let adds = group
                .iter()
                .map(|w| AddRequest { request: w.request, entry: w.entry.clone(), kind: AddKind::Normal })
                .collect();
            self.inner.engine.add_batch(adds, &first.sink);
        }
    }

    fn answer(&self, batch: Vec<Waiting>, outcome: &AddOutcome) {
        self.release(&batch);
        for w in batch {
            w.sink.acked(vec![(w.request, outcome.clone())]);
        }
    }

    fn release(&self, batch: &[Waiting]) {
        let bytes = batch.iter().map(|w| w.entry.len()).sum();
        self.inner.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// The quorum's verdict: OPEN with this uuid in the last fragment. A ledger that a repair has given to this bookie is not
/// written to (R22): it does not stand in the last fragment then.
fn takes_adds(record: Option<&LedgerRecord>, bookie: BookieId) -> bool {
    record.is_some_and(|r| {
        r.state == LedgerState::Open && r.last_fragment().is_some_and(|f| f.ensemble.contains(&bookie))
    })
}

/// Nothing has to be handed in for a ledger that is held: limbo and a lost uuid ask for those too.
fn admit(engine: &Engine, touch: FirstTouch) -> Admission {
    match touch {
        FirstTouch::NotNeeded => Admission::Admitted,
        FirstTouch::Ask(ticket) => engine.admit(ticket),
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::{EntryId, Epoch, Fragment, FragmentSeq, MemberId, PartitionId, TopicId, Version};
    use uuid::Uuid;

    use super::*;

    fn record(state: LedgerState, ensembles: &[&[BookieId]]) -> LedgerRecord {
        LedgerRecord {
            id: LedgerId(1),
            version: Version(1),
            partition: PartitionId { topic: TopicId(1), index: 0 },
            epoch: Epoch(1),
            ack_quorum: 1,
            state,
            last_entry: None,
            length: None,
            records: None,
            fragments: ensembles
                .iter()
                .zip(0..)
                .map(|(e, i)| Fragment { first_entry: EntryId(i), ensemble: e.to_vec(), under: vec![] })
                .collect(),
            fragment_seq: FragmentSeq(0),
            unchecked: false,
            repair: None,
            created_ms: 0,
        }
    }

    #[test]
    fn only_open_with_the_bookie_in_the_last_fragment_takes_adds() {
        let (me, other) = (MemberId(Uuid::from_u128(1)), MemberId(Uuid::from_u128(2)));
        assert!(takes_adds(Some(&record(LedgerState::Open, &[&[other], &[other, me]])), me));
        assert!(!takes_adds(Some(&record(LedgerState::Open, &[&[me], &[other]])), me));
        assert!(!takes_adds(Some(&record(LedgerState::InRecovery, &[&[me]])), me));
        assert!(!takes_adds(Some(&record(LedgerState::Closed, &[&[me]])), me));
        assert!(!takes_adds(None, me));
    }
}
