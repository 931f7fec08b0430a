//! The quorum's real state machine in this process, with a client per broker whose answers can be lost.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};

use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use tidemill_ledger::{BookieTable, LedgerMeta, MetaError};
use tidemill_metadata::State;
use tidemill_partition_log::{OwnerSession, PartitionMeta};
use tidemill_types::{
    LedgerId, LedgerRecord, PartitionId, RequestId, Revision, SessionId,
    meta::{Answer, Command, PartitionView, Query, Rejection, Reply, Request},
};
use tokio::sync::watch;

/// What happens to the next command of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Applied, the answer is lost.
    AppliedUnheard,
    /// Lost on the way; the sender does not know.
    Lost,
    /// Not sent.
    Unavailable,
}

pub(crate) struct Quorum {
    pub(crate) state: Mutex<State>,
    revision: AtomicU64,
    table: watch::Sender<Arc<BookieTable>>,
}

impl Quorum {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::new()),
            revision: AtomicU64::new(0),
            table: watch::Sender::new(Arc::default()),
        })
    }

    pub(crate) fn apply(&self, request: &Request) -> Result<Reply, Rejection> {
        let mut state = self.state.lock();
        let revision = Revision(self.revision.fetch_add(1, Ordering::SeqCst) + 1);
        let result = state.apply(revision, request).result;
        state.check().unwrap();
        let members: Vec<_> = state.members().cloned().collect();
        self.table.send_replace(Arc::new(BookieTable::from_members(&members)));
        result
    }

    /// A command of the quorum itself, or of a process without a session.
    pub(crate) fn own(&self, command: Command) -> Reply {
        self.apply(&Request { session: SessionId::NONE, request: RequestId(0), command }).unwrap()
    }

    pub(crate) fn view(&self, partition: PartitionId) -> PartitionView {
        match self.state.lock().query(&Query::Partition(partition)) {
            Answer::Partition(Some(v)) => v,
            other => panic!("{other:?}"),
        }
    }
}

/// A broker's client, in one session.
pub(crate) struct Client {
    pub(crate) quorum: Arc<Quorum>,
    pub(crate) session: SessionId,
    request: AtomicU64,
    faults: Mutex<VecDeque<(&'static str, Fault)>>,
    /// Nothing reaches the quorum.
    pub(crate) offline: AtomicBool,
    /// What the session's renewals say.
    pub(crate) valid: AtomicBool,
    pub(crate) sent: Mutex<Vec<&'static str>>,
    /// A time that has surely passed, ms; 0 = none.
    pub(crate) confirmed: AtomicI64,
    /// Commands that still get through; then nothing reaches the quorum any more.
    pub(crate) left: AtomicU64,
}

impl Client {
    pub(crate) fn new(quorum: Arc<Quorum>, session: SessionId) -> Arc<Self> {
        Arc::new(Self {
            quorum,
            session,
            request: AtomicU64::new(0),
            faults: Mutex::default(),
            offline: AtomicBool::new(false),
            valid: AtomicBool::new(true),
            sent: Mutex::default(),
            confirmed: AtomicI64::new(0),
            left: AtomicU64::new(u64::MAX),
        })
    }

    /// The next command of this kind meets this fault.
    pub(crate) fn fault(&self, kind: &'static str, fault: Fault) {
        self.faults.lock().push_back((kind, fault));
    }

    pub(crate) fn send(&self, command: Command) -> Result<Reply, Rejection> {
        let request = RequestId(self.request.fetch_add(1, Ordering::SeqCst) + 1);
        self.quorum.apply(&Request { session: self.session, request, command })
    }

    fn unavailable(&self) -> Option<MetaError> {
        self.offline.load(Ordering::SeqCst).then(|| MetaError::Unavailable("no leader".to_owned()))
    }
}

pub(crate) fn kind(c: &Command) -> &'static str {
    match c {
        Command::CreateLedger(_) => "create",
        Command::TakeOver(_) => "take-over",
        Command::Roll(_) => "roll",
        Command::Close { .. } => "close",
        Command::Append(_) => "append",
        Command::StartRecovery { .. } => "start-recovery",
        Command::Compact(_) => "compact",
        _ => "other",
    }
}

impl LedgerMeta for Client {
    fn bookies(&self) -> watch::Receiver<Arc<BookieTable>> {
        self.quorum.table.subscribe()
    }

    fn ledger(&self, ledger: LedgerId) -> BoxFuture<'_, Result<Option<LedgerRecord>, MetaError>> {
        async move {
            match self.unavailable() {
                Some(e) => Err(e),
                None => Ok(self.quorum.state.lock().ledger(ledger).cloned()),
            }
        }
        .boxed()
    }

    fn propose(&self, command: Command) -> BoxFuture<'_, Result<Result<Reply, Rejection>, MetaError>> {
        async move {
            if let Some(e) = self.unavailable() {
                return Err(e);
            }
            if self.left.load(Ordering::SeqCst) == 0 {
                self.offline.store(true, Ordering::SeqCst);
                return Err(MetaError::Unavailable("the process is dead".to_owned()));
            }
            if self.left.load(Ordering::SeqCst) != u64::MAX {
                self.left.fetch_sub(1, Ordering::SeqCst);
            }
            let kind = kind(&command);
            self.sent.lock().push(kind);
            let fault = {
                let mut faults = self.faults.lock();
                faults.iter().position(|(k, _)| *k == kind).and_then(|i| faults.remove(i)).map(|(_, f)| f)
            };
            match fault {
                None => Ok(self.send(command)),
                Some(Fault::AppliedUnheard) => {
                    self.send(command).unwrap();
                    Err(MetaError::OutcomeUnknown)
                }
                Some(Fault::Lost) => Err(MetaError::OutcomeUnknown),
                Some(Fault::Unavailable) => Err(MetaError::Unavailable("no leader".to_owned())),
            }
        }
        .boxed()
    }
}

impl PartitionMeta for Client {
    fn partition(&self, partition: PartitionId) -> BoxFuture<'_, Result<Option<PartitionView>, MetaError>> {
        async move {
            if let Some(e) = self.unavailable() {
                return Err(e);
            }
            match self.quorum.state.lock().query(&Query::Partition(partition)) {
                Answer::Partition(v) => Ok(v),
                other => panic!("{other:?}"),
            }
        }
        .boxed()
    }

    fn quorum_time_ms(&self) -> Option<i64> {
        Some(self.quorum.state.lock().wall_ms()).filter(|ms| *ms > 0)
    }

    fn confirmed_time_ms(&self) -> Option<i64> {
        Some(self.confirmed.load(Ordering::SeqCst)).filter(|ms| *ms > 0)
    }
}

impl OwnerSession for Client {
    fn is_valid(&self, session: SessionId) -> bool {
        self.valid.load(Ordering::SeqCst) && session == self.session
    }
}
