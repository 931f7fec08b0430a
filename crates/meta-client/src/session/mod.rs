//! A session with the quorum: opened once, renewed by itself, valid for less than the quorum counts.

mod confirmed;
mod open;
mod quorum_time;
mod renew;
mod validity;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tidemill_types::{
    BookieState, ClusterId, LanePosition, LedgerId, MemberId, RequestId, SessionId,
    meta::{Command, Rejection, Reply, Request},
};
use tokio::sync::watch;

use self::validity::Validity;
pub use self::{confirmed::ConfirmedTime, quorum_time::QuorumTime};
use crate::{MetaClient, MetaError};

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The quorum says that it expired.
    Expired,
    /// It was closed by [`Session::close`].
    Closed,
}

/// What a renewal carries besides the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenewalReport {
    /// Bookies: last synced commit group per lane (R16).
    pub positions: Vec<LanePosition>,
    /// Bookies: free bytes.
    pub free_bytes: u64,
    /// Brokers: number of degraded ledgers.
    pub degraded_ledgers: u32,
    /// Bookies: above the high-water mark.
    pub read_only: bool,
}

/// Asked before every renewal; must answer at once.
pub type ReportSource = Arc<dyn Fn() -> RenewalReport + Send + Sync>;

/// A session. Clones share it.
///
/// It is *valid* while the last renewal that was answered was sent less than TTL − 20 % ago on CLOCK_BOOTTIME and the wall
/// clock did not run ahead of it by more than 10 % of the TTL. It is *lost* once the quorum said so. Between the two it may
/// become valid again: nothing has to be dropped, but nothing that depends on being the owner may be answered from memory.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Shared>,
}

struct Shared {
    client: std::sync::Weak<crate::client::Inner>,
    clock: Arc<dyn tidemill_runtime::Clock>,
    opened: Opened,
    requests: Arc<AtomicU64>,
    validity: Mutex<Validity>,
    quorum_time: Mutex<Option<QuorumTime>>,
    confirmed: Mutex<ConfirmedTime>,
    lost: watch::Sender<Option<Lost>>,
    report: ReportSource,
}

/// What the quorum answered when the session was opened.
#[derive(Clone, Copy, Debug)]
struct Opened {
    member: MemberId,
    session: SessionId,
    cluster: ClusterId,
    next_ledger: LedgerId,
    state: BookieState,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("opened", &self.inner.opened)
            .field("lost", &*self.inner.lost.borrow())
            .finish()
    }
}

impl Session {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.inner.opened.session
    }

    /// Whose it is.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.inner.opened.member
    }

    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.inner.opened.cluster
    }

    /// The next ledger id when the session was opened: a bookie's first-touch mark (R27).
    #[must_use]
    pub fn next_ledger(&self) -> LedgerId {
        self.inner.opened.next_ledger
    }

    /// The state in which a bookie serves.
    #[must_use]
    pub fn state(&self) -> BookieState {
        self.inner.opened.state
    }

    /// Whether the session is valid at this moment.
    #[must_use]
    pub fn is_valid_now(&self) -> bool {
        self.valid_for().is_some()
    }

    /// How much longer it is valid without another renewal; `None` when it is not valid.
    #[must_use]
    pub fn valid_for(&self) -> Option<Duration> {
        let clock = &self.inner.clock;
        self.inner.validity.lock().left(clock.boottime(), clock.realtime_ms())
    }

    /// Why it is over; `None` while it may live.
    #[must_use]
    pub fn is_lost(&self) -> Option<Lost> {
        *self.inner.lost.borrow()
    }

    /// Waits until it is over. It never comes back: open a new one, after dropping everything that was owned under it.
    pub async fn lost(&self) -> Lost {
        let mut rx = self.inner.lost.subscribe();
        loop {
            let now = *rx.borrow_and_update();
            if let Some(lost) = now {
                return lost;
            }
            // The sender lives in `self`.
            if rx.changed().await.is_err() {
                return Lost::Closed;
            }
        }
    }

    /// Quorum time as last heard; `None` before the first tick.
    #[must_use]
    pub fn quorum_time(&self) -> Option<QuorumTime> {
        *self.inner.quorum_time.lock()
    }

    /// A time that has surely passed, ms since the Unix epoch: two ticks of the quorum, far apart and without a jump between,
    /// lie behind it. `None` until this session has heard so much.
    #[must_use]
    pub fn confirmed_time_ms(&self) -> Option<i64> {
        self.inner.confirmed.lock().time_ms()
    }

    /// Proposes a command under this session, with one request id for all tries (R9).
    ///
    /// # Errors
    /// As [`MetaClient::propose`].
    pub async fn propose(&self, command: Command) -> Result<Result<Reply, Rejection>, MetaError> {
        if self.is_lost().is_some() {
            return Err(MetaError::SessionExpired);
        }
        let Some(client) = self.inner.client.upgrade() else {
            return Err(MetaError::Unavailable { why: "the client is gone".to_owned() });
        };
        let request = RequestId(self.inner.requests.fetch_add(1, Ordering::Relaxed));
        let request = Request { session: self.id(), request, command };
        let result = crate::propose::propose(&client, &request).await;
        if matches!(result, Err(MetaError::SessionExpired)) {
            self.end(Lost::Expired);
        }
        result
    }

    /// Ends the session in order: what it owns is released at once instead of after the TTL.
    ///
    /// # Errors
    /// As [`MetaClient::propose`]; the session is over here in any case.
    pub async fn close(&self) -> Result<(), MetaError> {
        let result = self.propose(Command::CloseSession).await;
        self.end(Lost::Closed);
        result.map(|_| ())
    }

    /// From now on it is invalid and lost; the first reason stays.
    fn end(&self, why: Lost) {
        self.inner.validity.lock().revoke();
        self.inner.lost.send_if_modified(|v| {
            let first = v.is_none();
            if first {
                *v = Some(why);
            }
            first
        });
    }
}

impl MetaClient {
    fn adopt(&self, session: &Session) {
        *self.inner.session.lock() = Some(session.clone());
    }
}
