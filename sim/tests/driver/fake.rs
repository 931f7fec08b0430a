//! Bookies and metadata in this process, behind the driver's traits: the model's bookie for each ledger, with cuts, stalls
//! and refusals.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use tidemill_ledger::{
    BookieInfo, BookieTable, LedgerClient, LedgerConfig, LedgerMeta, MetaError,
    core::{AddAnswer, FenceAnswer, Negative, ReadAnswer, Unknown},
    transport::{AddStream, NoStream, ReadItem, ReadSpec, Target, Transport, WireAck, WireAdd},
};
use tidemill_sim::model::{
    bookie::{Added, Bookie, BookieRules},
    ledger::uuid,
    meta::{self, MetaRules},
};
use tidemill_types::{
    BookieId, BookieState, ClusterId, Endpoint, Entry, EntryId, Epoch, Fragment, FragmentSeq, Incarnation,
    LedgerId, LedgerRecord, LedgerState, PartitionId, TopicId, Version,
    meta::{Command, Rejection, Reply},
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Who waits for a bookie's sync.
enum Held {
    Ack(u64, mpsc::Sender<Vec<WireAck>>),
    Fence(oneshot::Sender<()>),
}

#[derive(Default)]
struct State {
    ledgers: HashMap<LedgerId, Bookie<Held>>,
    down: bool,
    /// Takes no streams of adds.
    no_streams: bool,
    /// Adds are accepted and not synced.
    stalled: bool,
    /// Requests get no answer at all.
    silent: bool,
    refuse: VecDeque<AddAnswer>,
    corrupt: Vec<EntryId>,
    cut: CancellationToken,
    adds_seen: usize,
    messages_seen: usize,
    fence_calls: usize,
}

pub(crate) struct FakeBookie {
    pub(crate) id: BookieId,
    state: Mutex<State>,
}

impl FakeBookie {
    pub(crate) fn cut(&self) {
        let mut s = self.state.lock();
        s.down = true;
        std::mem::take(&mut s.cut).cancel();
    }

    pub(crate) fn back(&self) {
        let mut s = self.state.lock();
        s.down = false;
        s.no_streams = false;
    }

    /// Reachable for everybody but writers.
    pub(crate) fn back_without_streams(&self) {
        let mut s = self.state.lock();
        s.down = false;
        s.no_streams = true;
    }

    pub(crate) fn stall(&self) {
        self.state.lock().stalled = true;
    }

    pub(crate) fn silent(&self) {
        self.state.lock().silent = true;
    }

    pub(crate) fn refuse(&self, answer: AddAnswer) {
        self.state.lock().refuse.push_back(answer);
    }

    pub(crate) fn corrupt(&self, entry: EntryId) {
        self.state.lock().corrupt.push(entry);
    }

    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let s = self.state.lock();
        (s.adds_seen, s.messages_seen, s.fence_calls)
    }

    /// Syncs everything that was accepted and answers.
    pub(crate) async fn release(&self) {
        let held: Vec<Held> = {
            let mut s = self.state.lock();
            s.stalled = false;
            s.ledgers.values_mut().flat_map(Bookie::sync).collect()
        };
        for h in held {
            match h {
                Held::Ack(request_id, tx) => {
                    let _ = tx.send(vec![WireAck { request_id, answer: AddAnswer::Ok }]).await;
                }
                Held::Fence(tx) => drop(tx.send(())),
            }
        }
    }

    /// The entries that it holds durably.
    pub(crate) fn holds(&self, ledger: LedgerId) -> Vec<i64> {
        let s = self.state.lock();
        let Some(b) = s.ledgers.get(&ledger) else { return vec![] };
        (0..1000).filter(|e| b.synced.get(EntryId(*e)).is_some()).collect()
    }

    /// Puts a copy there, as if an add had arrived and its ack been lost.
    pub(crate) fn put(&self, entry: &Entry) {
        let mut s = self.state.lock();
        s.ledgers.entry(entry.header().ledger).or_default().add(entry.clone(), true, true);
    }

    pub(crate) fn bytes(&self, ledger: LedgerId, entry: EntryId) -> Option<Bytes> {
        self.state.lock().ledgers.get(&ledger)?.synced.get(entry).map(|e| e.bytes().clone())
    }

    fn take_adds(&self, adds: Vec<WireAdd>, tx: &mpsc::Sender<Vec<WireAck>>) -> Vec<WireAck> {
        let mut s = self.state.lock();
        s.messages_seen += 1;
        let mut acks = Vec::new();
        for a in adds {
            s.adds_seen += 1;
            if s.silent {
                continue;
            }
            if let Some(answer) = s.refuse.pop_front() {
                acks.push(WireAck { request_id: a.request_id, answer });
                continue;
            }
            let e = Entry::decode(a.entry).unwrap();
            let now = !s.stalled;
            let ledger = s.ledgers.entry(e.header().ledger).or_default();
            match ledger.add(e, false, now) {
                Added::Durable => acks.push(WireAck { request_id: a.request_id, answer: AddAnswer::Ok }),
                Added::Waits => ledger.waiting.push(Held::Ack(a.request_id, tx.clone())),
                Added::Fenced => acks.push(WireAck { request_id: a.request_id, answer: AddAnswer::Fenced }),
            }
        }
        acks
    }

    async fn answers(&self) -> bool {
        let (down, silent) = {
            let s = self.state.lock();
            (s.down, s.silent)
        };
        if silent {
            std::future::pending::<()>().await;
        }
        !down
    }

    /// R25: waits for accepted adds.
    async fn fence(&self, ledger: LedgerId) -> EntryId {
        let wait = {
            let mut s = self.state.lock();
            let b = s.ledgers.entry(ledger).or_default();
            if b.fence(BookieRules::default()) {
                None
            } else {
                let (tx, rx) = oneshot::channel();
                b.waiting.push(Held::Fence(tx));
                Some(rx)
            }
        };
        if let Some(rx) = wait {
            let _ = rx.await;
        }
        self.state.lock().ledgers.get(&ledger).map_or(EntryId::NONE, |b| b.lac)
    }

    fn read(&self, spec: ReadSpec) -> Vec<ReadItem> {
        let s = self.state.lock();
        let mut out = Vec::new();
        let mut bytes = 0;
        for e in (spec.first.0..=spec.last.0).map(EntryId) {
            let answer = match s.ledgers.get(&spec.ledger) {
                None => ReadAnswer::Negative(Negative::NoSuchLedger),
                Some(b) => match b.synced.get(e) {
                    None => ReadAnswer::Negative(Negative::NoSuchEntry),
                    Some(entry) => {
                        let mut b = entry.bytes().clone();
                        if spec.header_only {
                            b = b.slice(..entry.header().head_len());
                        }
                        if s.corrupt.contains(&e) {
                            let mut v = b.to_vec();
                            v[10] ^= 1;
                            b = v.into();
                        }
                        bytes += b.len();
                        ReadAnswer::Found(b)
                    }
                },
            };
            let last = !spec.fence && !matches!(answer, ReadAnswer::Found(_));
            out.push((e, answer));
            if last || bytes >= spec.max_bytes as usize {
                break;
            }
        }
        out
    }
}

pub(crate) struct FakeTransport {
    bookies: BTreeMap<BookieId, Arc<FakeBookie>>,
}

impl FakeTransport {
    fn bookie(&self, t: &Target) -> Arc<FakeBookie> {
        self.bookies[&t.bookie].clone()
    }
}

impl Transport for FakeTransport {
    fn open_adds(&self, target: Target) -> BoxFuture<'static, Result<AddStream, NoStream>> {
        let b = self.bookie(&target);
        async move {
            if !b.answers().await || b.state.lock().no_streams {
                return Err(NoStream(Unknown::Closed));
            }
            let (adds, mut queue) = mpsc::channel::<Vec<WireAdd>>(4);
            let (tx, acks) = mpsc::channel(4);
            let cut = b.state.lock().cut.clone();
            tokio::spawn(async move {
                loop {
                    let batch = tokio::select! {
                        m = queue.recv() => m,
                        () = cut.cancelled() => return,
                    };
                    let Some(batch) = batch else { return };
                    let out = b.take_adds(batch, &tx);
                    if !out.is_empty() && tx.send(out).await.is_err() {
                        return;
                    }
                }
            });
            let acks = Box::pin(tokio_stream::wrappers::ReceiverStream::new(acks));
            Ok(AddStream { incarnation: target.incarnation, adds, acks })
        }
        .boxed()
    }

    fn read(&self, target: Target, spec: ReadSpec) -> BoxFuture<'static, Vec<ReadItem>> {
        let b = self.bookie(&target);
        async move {
            if !b.answers().await {
                return vec![(spec.first, ReadAnswer::Unknown(Unknown::Closed))];
            }
            if spec.fence {
                b.fence(spec.ledger).await;
            }
            b.read(spec)
        }
        .boxed()
    }

    fn fence(&self, target: Target, ledgers: Vec<LedgerId>) -> BoxFuture<'static, Vec<FenceAnswer>> {
        let b = self.bookie(&target);
        async move {
            b.state.lock().fence_calls += 1;
            if !b.answers().await {
                return vec![FenceAnswer::Unknown(Unknown::Closed); ledgers.len()];
            }
            let mut out = Vec::new();
            for l in ledgers {
                out.push(FenceAnswer::Confirmed { lac: b.fence(l).await });
            }
            out
        }
        .boxed()
    }

    fn recovery_add(&self, target: Target, entries: Vec<Bytes>) -> BoxFuture<'static, Vec<AddAnswer>> {
        let b = self.bookie(&target);
        async move {
            if !b.answers().await {
                return vec![AddAnswer::Unknown(Unknown::Closed); entries.len()];
            }
            let mut s = b.state.lock();
            entries
                .into_iter()
                .map(|e| {
                    let e = Entry::decode(e).unwrap();
                    s.ledgers.entry(e.header().ledger).or_default().add(e, true, true);
                    AddAnswer::Ok
                })
                .collect()
        }
        .boxed()
    }

    fn read_lac(
        &self,
        target: Target,
        ledger: LedgerId,
        _above: Option<EntryId>,
        _wait: Duration,
    ) -> BoxFuture<'static, FenceAnswer> {
        let b = self.bookie(&target);
        async move {
            if !b.answers().await {
                return FenceAnswer::Unknown(Unknown::Closed);
            }
            let lac = b.state.lock().ledgers.get(&ledger).map_or(EntryId::NONE, |b| b.lac);
            FenceAnswer::Confirmed { lac }
        }
        .boxed()
    }

    fn write_lac(&self, target: Target, ledger: LedgerId, lac: EntryId) -> BoxFuture<'static, bool> {
        let b = self.bookie(&target);
        async move {
            if !b.answers().await {
                return false;
            }
            let mut s = b.state.lock();
            let Some(l) = s.ledgers.get_mut(&ledger) else { return false };
            l.lac = l.lac.max(lac);
            true
        }
        .boxed()
    }
}

/// What goes wrong with the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Applied, the answer is lost.
    AppliedUnheard,
    /// Not applied now; nobody knows.
    Lost,
    /// Not sent.
    Unavailable,
    /// A repair touches the record first.
    VersionMoves,
}

pub(crate) struct FakeMeta {
    table: watch::Sender<Arc<BookieTable>>,
    records: Mutex<HashMap<LedgerId, LedgerRecord>>,
    faults: Mutex<VecDeque<Fault>>,
    pub(crate) commands: Mutex<Vec<Command>>,
    /// While set, commands wait.
    gate: watch::Sender<bool>,
    arrived: Notify,
}

impl FakeMeta {
    pub(crate) fn fault(&self, f: Fault) {
        self.faults.lock().push_back(f);
    }

    pub(crate) fn hold_commands(&self, hold: bool) {
        self.gate.send_replace(hold);
    }

    /// A command came in, since the last time this was asked.
    pub(crate) async fn command_arrived(&self) {
        self.arrived.notified().await;
    }

    pub(crate) fn record(&self, l: LedgerId) -> LedgerRecord {
        self.records.lock()[&l].clone()
    }

    pub(crate) fn remove(&self, l: LedgerId) {
        self.records.lock().remove(&l);
    }

    pub(crate) fn edit_table(&self, f: impl FnOnce(&mut Vec<BookieInfo>)) {
        self.table.send_modify(|t| {
            let mut v: Vec<BookieInfo> = t.iter().cloned().collect();
            f(&mut v);
            *t = Arc::new(v.into_iter().collect());
        });
    }

    fn apply(&self, c: &Command) -> Result<Reply, Rejection> {
        let mut records = self.records.lock();
        let id = match c {
            Command::ChangeEnsemble(c) => c.ledger,
            Command::StartRecovery { ledger, .. } => *ledger,
            Command::Close { close, .. } => close.ledger,
            other => panic!("not used here: {other:?}"),
        };
        let r = records.get_mut(&id).ok_or(Rejection::NotFound { what: format!("ledger {id}") })?;
        match c {
            Command::ChangeEnsemble(c) => meta::change(r, c, meta::MetaRules::default())?,
            Command::StartRecovery { version, .. } => meta::start_recovery(r, *version)?,
            Command::Close { close, epoch } => meta::close(r, close, epoch.is_some(), MetaRules::default())?,
            _ => {}
        }
        Ok(Reply::Ledger(r.clone()))
    }
}

impl LedgerMeta for FakeMeta {
    fn bookies(&self) -> watch::Receiver<Arc<BookieTable>> {
        self.table.subscribe()
    }

    fn ledger(&self, ledger: LedgerId) -> BoxFuture<'_, Result<Option<LedgerRecord>, MetaError>> {
        async move { Ok(self.records.lock().get(&ledger).cloned()) }.boxed()
    }

    fn propose(&self, command: Command) -> BoxFuture<'_, Result<Result<Reply, Rejection>, MetaError>> {
        async move {
            self.commands.lock().push(command.clone());
            self.arrived.notify_one();
            let _ = self.gate.subscribe().wait_for(|held| !held).await;
            let fault = self.faults.lock().pop_front();
            match fault {
                None => Ok(self.apply(&command)),
                Some(Fault::AppliedUnheard) => {
                    let _ = self.apply(&command);
                    Err(MetaError::OutcomeUnknown)
                }
                Some(Fault::Lost) => Err(MetaError::OutcomeUnknown),
                Some(Fault::Unavailable) => Err(MetaError::Unavailable("no leader".to_owned())),
                Some(Fault::VersionMoves) => {
                    for r in self.records.lock().values_mut() {
                        r.version = Version(r.version.0 + 1);
                    }
                    Ok(self.apply(&command))
                }
            }
        }
        .boxed()
    }
}

pub(crate) struct Cluster {
    pub(crate) bookies: Vec<Arc<FakeBookie>>,
    pub(crate) meta: Arc<FakeMeta>,
    pub(crate) client: LedgerClient,
    pub(crate) transport: Arc<FakeTransport>,
}

pub(crate) const CLUSTER: ClusterId = ClusterId(uuid::Uuid::from_u128(99));

impl Cluster {
    pub(crate) fn new(bookies: u8) -> Self {
        Self::with(bookies, |_| {})
    }

    pub(crate) fn with(bookies: u8, f: impl FnOnce(&mut LedgerConfig)) -> Self {
        let list: Vec<Arc<FakeBookie>> =
            (0..bookies).map(|n| Arc::new(FakeBookie { id: uuid(n), state: Mutex::default() })).collect();
        let table: BookieTable = list
            .iter()
            .map(|b| BookieInfo {
                id: b.id,
                incarnation: Incarnation(1),
                endpoint: Endpoint { host: "fake".to_owned(), port: 1 },
                zone: String::new(),
                state: BookieState::Rw,
                limbo_count: 0,
                restarting: false,
                live: true,
                free_bytes: 0,
            })
            .collect();
        let meta = Arc::new(FakeMeta {
            table: watch::Sender::new(Arc::new(table)),
            records: Mutex::default(),
            faults: Mutex::default(),
            commands: Mutex::default(),
            gate: watch::Sender::new(false),
            arrived: Notify::new(),
        });
        let transport = Arc::new(FakeTransport { bookies: list.iter().map(|b| (b.id, b.clone())).collect() });
        let mut config = LedgerConfig::new(CLUSTER);
        f(&mut config);
        let client = LedgerClient::with_transport(meta.clone(), transport.clone(), config);
        Self { bookies: list, meta, client, transport }
    }

    /// Another process of the same cluster.
    pub(crate) fn another_client(&self) -> LedgerClient {
        LedgerClient::with_transport(self.meta.clone(), self.transport.clone(), LedgerConfig::new(CLUSTER))
    }

    /// A new ledger on the first `copies` bookies.
    pub(crate) fn create(&self, id: u64, copies: u8, ack_quorum: u8) -> LedgerRecord {
        let r = LedgerRecord {
            id: LedgerId(id),
            version: Version(1),
            partition: PartitionId { topic: TopicId(1), index: 0 },
            epoch: Epoch(1),
            ack_quorum,
            state: LedgerState::Open,
            last_entry: None,
            length: None,
            records: None,
            fragments: vec![Fragment {
                first_entry: EntryId::FIRST,
                ensemble: (0..copies).map(uuid).collect(),
                under: vec![],
            }],
            fragment_seq: FragmentSeq(0),
            unchecked: false,
            repair: None,
            created_ms: 0,
        };
        self.meta.records.lock().insert(r.id, r.clone());
        r
    }
}
