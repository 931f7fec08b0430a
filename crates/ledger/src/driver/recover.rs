//! Recovery driven by tokio (1.6).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tidemill_types::{
    BookieId, Entry, EntryId, LedgerId, LedgerRecord, LedgerState, meta::CloseLedger, quorum,
};

use super::{LedgerReader, fences::Fences, shared::Shared, write_backs::WriteBacks};
use crate::{
    MetaError, RecoverError,
    core::{
        AddAnswer, FenceAnswer, MetaOutcome, ReadAnswer, Rules, Unknown,
        recovery::{Abort, Input, Output, RecoveryCore, Spare},
    },
    transport::ReadSpec,
};

/// Entries asked for ahead of the decision.
const WINDOW: usize = 32;
/// Tries of one request before its unknown counts.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of one call of recovery adds.
const WRITE_BYTES: usize = 1 << 20;

/// The end of a ledger.
#[derive(Debug)]
pub enum Recovered {
    /// CLOSED already, with this record's end.
    Closed(LedgerRecord),
    /// Decided, not stored yet: send `close` in a `TakeOver` or `Close`; act on nothing before it committed. When it is
    /// refused, or its outcome stays unknown: recover again.
    Decided(Box<RecoveredEnd>),
}

/// A decided end.
#[derive(Debug)]
pub struct RecoveredEnd {
    /// Everything but `records`, which is 0: set it to the records in the `data` entries up to `close.last_entry`.
    pub close: CloseLedger,
    /// The last entry, when recovery read it: its envelope tells where the records end. `None` for an empty ledger, and when
    /// the end is the LAC that a bookie told: read it with `reader`.
    pub last: Option<Entry>,
    /// Reads the entries up to the end (to count records and to rebuild state).
    pub reader: LedgerReader,
}

impl Recovered {
    /// The last entry, [`EntryId::NONE`] for an empty ledger.
    #[must_use]
    pub fn last_entry(&self) -> EntryId {
        match self {
            Self::Closed(r) => r.last_entry.unwrap_or(EntryId::NONE),
            Self::Decided(e) => e.close.last_entry,
        }
    }
}

type Calls = FuturesUnordered<BoxFuture<'static, Vec<Input>>>;

/// Reads and write-backs of one step, gathered per bookie.
#[derive(Default)]
struct Gathered {
    reads: BTreeMap<(BookieId, u8, bool), Vec<EntryId>>,
    writes: BTreeMap<(BookieId, u8, u32), Vec<Entry>>,
}

/// `known`: the record as a linearizable read just gave it. It spares the first read: `StartRecovery` is conditional on its
/// version, so one that has changed since is read again.
pub(crate) async fn recover(
    shared: &Arc<Shared>,
    ledger: LedgerId,
    known: Option<LedgerRecord>,
) -> Result<Recovered, RecoverError> {
    tokio::time::timeout(shared.config.recovery_timeout, run(shared, ledger, known))
        .await
        .unwrap_or(Err(RecoverError::DeadlineExceeded(ledger)))
}

async fn run(
    shared: &Arc<Shared>,
    ledger: LedgerId,
    mut known: Option<LedgerRecord>,
) -> Result<Recovered, RecoverError> {
    let mut core = RecoveryCore::new(ledger, WINDOW, Rules::default());
    let mut calls: Calls = FuturesUnordered::new();
    let mut frozen: Option<LedgerRecord> = None;
    let mut out = Vec::new();
    let mut restarts = 0u32;
    core.start(&mut out);
    loop {
        let mut gathered = Gathered::default();
        for o in std::mem::take(&mut out) {
            match o {
                Output::ReadRecord => {
                    // What an earlier round asked for is not heard any more.
                    calls = FuturesUnordered::new();
                    gathered = Gathered::default();
                    if restarts > 0 {
                        tokio::time::sleep(PAUSE).await;
                    }
                    restarts += 1;
                    let record = match known.take() {
                        Some(record) => Some(record),
                        None => shared.meta.ledger(ledger).await?,
                    };
                    frozen.clone_from(&record);
                    if record.as_ref().is_some_and(|r| r.state == LedgerState::InRecovery) {
                        tracing::debug!(target: "tidemill_rare", "recovery joined another");
                    }
                    core.step(Input::Record(record), &mut out);
                }
                Output::StartRecovery(version) => {
                    let outcome = start_recovery(shared, ledger, version).await?;
                    if let MetaOutcome::Committed(r) = &outcome {
                        frozen = Some(r.clone());
                    }
                    core.step(Input::Started(outcome), &mut out);
                }
                Output::Fence { index, bookie } => calls.push(fence(shared, ledger, index, bookie)),
                Output::Read { index, bookie, entry, fence } => {
                    gathered.reads.entry((bookie, index, fence)).or_default().push(entry);
                }
                Output::WriteBack { index, bookie, attempt, entry } => {
                    gathered.writes.entry((bookie, index, attempt)).or_default().push(entry);
                }
                Output::NeedSpare { index, bookie, attempt, ensemble } => {
                    let spare = shared
                        .table()
                        .spares(&ensemble, &[bookie])
                        .first()
                        .map(|b| Spare { bookie: b.id, limbo_count: b.limbo_count });
                    core.step(Input::Spare { index, attempt, spare }, &mut out);
                }
                Output::LocalChange(fragments) => {
                    tracing::info!(ledger = ledger.0, fragments = fragments.len(), "local ensemble change");
                }
                Output::Close { close, last } => {
                    let frozen = frozen.ok_or(RecoverError::NoSuchLedger(ledger))?;
                    return decided(shared, frozen, close, last).await;
                }
                Output::Done(record) => return Ok(Recovered::Closed(record)),
                Output::Gone => return Err(RecoverError::NoSuchLedger(ledger)),
                Output::Abort(why) => return Err(abort(&core, ledger, frozen.as_ref(), why)),
            }
        }
        for ((bookie, index, fence), entries) in gathered.reads {
            calls.push(read(shared, ledger, (bookie, index), fence, &entries));
        }
        for ((bookie, index, attempt), entries) in gathered.writes {
            calls.push(write(shared, (bookie, index), attempt, entries));
        }
        if out.is_empty() {
            let Some(inputs) = calls.next().await else {
                return Err(RecoverError::DeadlineExceeded(ledger));
            };
            for i in inputs {
                core.step(i, &mut out);
            }
        }
    }
}

fn abort(core: &RecoveryCore, ledger: LedgerId, record: Option<&LedgerRecord>, why: Abort) -> RecoverError {
    match why {
        Abort::NotFenced => {
            let needed = record
                .and_then(|r| {
                    let e = r.last_fragment()?.ensemble.len();
                    Some(quorum::ensemble_coverage(e, usize::from(r.ack_quorum)))
                })
                .unwrap_or(0);
            RecoverError::NotFenced { ledger, confirmed: core.confirmed(), needed }
        }
        Abort::Undecided(entry) => {
            tracing::debug!(target: "tidemill_rare", "undecided recovery aborted");
            RecoverError::Undecided { ledger, entry }
        }
        Abort::WriteBack(entry) => RecoverError::WriteBack { ledger, entry },
        Abort::Divergent(entry) => {
            tracing::error!(ledger = ledger.0, entry = entry.0, "copies differ (R24)");
            RecoverError::Divergent { ledger, entry }
        }
        Abort::BadRecord => RecoverError::BadRecord(ledger),
    }
}

async fn start_recovery(
    shared: &Shared,
    ledger: LedgerId,
    version: tidemill_types::Version,
) -> Result<MetaOutcome, MetaError> {
    match shared.meta.start_recovery(ledger, version).await {
        Ok(Ok(r)) => Ok(MetaOutcome::Committed(r)),
        Err(MetaError::OutcomeUnknown) => Ok(MetaOutcome::Unknown),
        Ok(Err(tidemill_types::meta::Rejection::SessionExpired)) => Err(MetaError::SessionExpired),
        Ok(Err(r)) => Ok(MetaOutcome::Rejected(r)),
        Err(e) => Err(e),
    }
}

/// The length of a ledger that ends at a LAC comes from that entry's header.
async fn decided(
    shared: &Arc<Shared>,
    mut record: LedgerRecord,
    mut close: CloseLedger,
    last: Option<Entry>,
) -> Result<Recovered, RecoverError> {
    if !close.fragments.is_empty() {
        record.fragments.clone_from(&close.fragments);
    }
    let end = close.last_entry;
    let ledger = record.id;
    let reader = LedgerReader::new(shared.clone(), record, end);
    if last.is_none() && end >= EntryId::FIRST {
        let head = reader.read_head(end).await.map_err(|_| RecoverError::Undecided { ledger, entry: end })?;
        close.length = head.header.cumulative_length;
    }
    Ok(Recovered::Decided(Box::new(RecoveredEnd { close, last, reader })))
}

fn fence(
    shared: &Arc<Shared>,
    ledger: LedgerId,
    index: u8,
    bookie: BookieId,
) -> BoxFuture<'static, Vec<Input>> {
    let shared = shared.clone();
    async move {
        let mut answer = FenceAnswer::Unknown(Unknown::Closed);
        for _ in 0..TRIES {
            answer = Fences::fence(&shared, bookie, ledger).await;
            if matches!(answer, FenceAnswer::Confirmed { .. }) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        vec![Input::Fenced { index, answer }]
    }
    .boxed()
}

/// One call for a run of entries; what got no answer of its own is unknown.
fn read(
    shared: &Arc<Shared>,
    ledger: LedgerId,
    (bookie, index): (BookieId, u8),
    fence: bool,
    entries: &[EntryId],
) -> BoxFuture<'static, Vec<Input>> {
    let shared = shared.clone();
    let (Some(first), Some(last)) = (entries.iter().min().copied(), entries.iter().max().copied()) else {
        return futures::future::ready(Vec::new()).boxed();
    };
    async move {
        let mut left = first;
        let mut inputs = Vec::new();
        let mut tries = 0;
        // The byte limit may end an answer early: go on from where it stopped.
        while left <= last && tries < TRIES {
            let spec = ReadSpec { ledger, first: left, last, max_bytes: 8 << 20, header_only: false, fence };
            let items = match shared.target(bookie) {
                None => Vec::new(),
                Some(t) => tokio::time::timeout(shared.config.add_timeout, shared.transport.read(t, spec))
                    .await
                    .unwrap_or_default(),
            };
            let before = left;
            for (entry, answer) in items {
                if entry != left {
                    break;
                }
                let answer = match answer {
                    ReadAnswer::Found(b) => match Entry::decode(b) {
                        Ok(e) => ReadAnswer::Found(e),
                        Err(_) => ReadAnswer::Unknown(Unknown::Corrupt),
                    },
                    ReadAnswer::Negative(n) => ReadAnswer::Negative(n),
                    ReadAnswer::Unknown(u) => ReadAnswer::Unknown(u),
                };
                if matches!(answer, ReadAnswer::Unknown(u) if u != Unknown::Corrupt) {
                    break; // worth another try
                }
                inputs.push(Input::Read { index, entry, answer });
                left = left.next();
            }
            if left == before {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
        while left <= last {
            let answer = ReadAnswer::Unknown(Unknown::TimedOut);
            inputs.push(Input::Read { index, entry: left, answer });
            left = left.next();
        }
        inputs
    }
    .boxed()
}

fn write(
    shared: &Arc<Shared>,
    (bookie, index): (BookieId, u8),
    attempt: u32,
    entries: Vec<Entry>,
) -> BoxFuture<'static, Vec<Input>> {
    let shared = shared.clone();
    async move {
        let mut inputs = Vec::with_capacity(entries.len());
        let mut rest = entries.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let n = rest
                .iter()
                .take_while(|e| {
                    bytes += e.bytes().len();
                    bytes <= WRITE_BYTES
                })
                .count()
                .max(1);
            let (now, later) = rest.split_at(n);
            let answers = write_batch(&shared, bookie, now).await;
            for (e, answer) in now.iter().zip(answers) {
                inputs.push(Input::Written { index, attempt, entry: e.header().entry, answer });
            }
            rest = later;
        }
        inputs
    }
    .boxed()
}

async fn write_batch(shared: &Arc<Shared>, bookie: BookieId, entries: &[Entry]) -> Vec<AddAnswer> {
    let mut answers = vec![AddAnswer::Unknown(Unknown::Closed); entries.len()];
    for _ in 0..TRIES {
        let now = WriteBacks::write(shared, bookie, entries.to_vec()).await;
        for (answer, now) in answers.iter_mut().zip(now) {
            // What an earlier try settled stays settled.
            if !matches!(answer, AddAnswer::Ok | AddAnswer::Conflict) {
                *answer = now;
            }
        }
        if answers.iter().all(|a| matches!(a, AddAnswer::Ok | AddAnswer::Conflict)) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    answers
}
