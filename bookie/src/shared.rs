//! What all parts of a bookie share, and the gate that every request passes (R26).

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::RwLock;
use tidemill_proto::{
    bookie::{Code, Identity},
    convert,
};
use tidemill_runtime::Supervisor;
use tidemill_storage::Engine;
use tidemill_types::{BookieId, BookieState, ClusterId, Incarnation};
use tokio::sync::{Notify, Semaphore};

use crate::{config::BookieConfig, counters::Counters, lac::LacWaiters, touch::Touches};

/// One bookie.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: BookieConfig,
    pub(crate) sup: Supervisor,
    pub(crate) counters: Counters,
    /// Control requests under way.
    pub(crate) controls: Arc<Semaphore>,
    /// Told when the lanes have something to do, where they have no threads.
    pub(crate) lane_work: Arc<Notify>,
    phase: RwLock<Phase>,
    /// There once the boot has written its incarnation into the cookies; shut down when the bookie stops.
    engine: OnceLock<Engine>,
    /// What the cookies said, for `GetInfo` before the bookie serves.
    found: RwLock<Option<(BookieId, Option<ClusterId>)>>,
}

/// Where the bookie stands.
#[derive(Clone, Debug)]
enum Phase {
    Starting,
    Serving(Arc<Serving>),
    /// Nothing new is taken; what was accepted is still answered.
    Draining(Option<Arc<Serving>>),
}

/// A bookie that has finished its boot.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) engine: Engine,
    pub(crate) cluster: ClusterId,
    pub(crate) id: BookieId,
    pub(crate) incarnation: Incarnation,
    pub(crate) touches: Touches,
    pub(crate) lacs: Arc<LacWaiters>,
    /// The state of the uuid as the quorum last told it.
    state: RwLock<BookieState>,
    /// The quorum declared the uuid lost or retired: it answers nobody (metadata, Members).
    silent: AtomicBool,
}

impl Core {
    pub(crate) fn new(config: BookieConfig, sup: Supervisor, counters: Counters) -> Arc<Self> {
        let controls = Arc::new(Semaphore::new(config.control_queue));
        Arc::new(Self {
            config,
            sup,
            counters,
            controls,
            lane_work: Arc::default(),
            phase: RwLock::new(Phase::Starting),
            engine: OnceLock::new(),
            found: RwLock::new(None),
        })
    }

    /// The disks were read.
    pub(crate) fn found(&self, bookie: BookieId, cluster: Option<ClusterId>) {
        *self.found.write() = Some((bookie, cluster));
    }

    /// The boot is finished. `false` when the bookie stops already.
    pub(crate) fn serve(&self, serving: Arc<Serving>) -> bool {
        let mut phase = self.phase.write();
        if matches!(*phase, Phase::Starting) {
            *phase = Phase::Serving(serving);
            true
        } else {
            false
        }
    }

    /// From now on nothing new is taken.
    pub(crate) fn drain(&self) {
        let mut phase = self.phase.write();
        let serving = match &*phase {
            Phase::Serving(s) => Some(s.clone()),
            Phase::Draining(s) => s.clone(),
            Phase::Starting => None,
        };
        *phase = Phase::Draining(serving);
    }

    /// The gate (R26): who serves, if it is the one that the caller means. Anything else is unknown to the caller, never a
    /// negative and never an ack.
    pub(crate) fn gate(&self, identity: Option<&Identity>) -> Result<Arc<Serving>, Code> {
        let serving = match &*self.phase.read() {
            Phase::Serving(s) => s.clone(),
            Phase::Starting | Phase::Draining(_) => return Err(Code::NotReady),
        };
        let (cluster, id, incarnation) =
            identity.and_then(|i| convert::parse_identity(i).ok()).ok_or(Code::Invalid)?;
        let any = Incarnation(0);
        if cluster != serving.cluster
            || id != serving.id
            || (incarnation != any && incarnation != serving.incarnation)
        {
            self.counters.wrong_identity.inc();
            return Err(Code::WrongIdentity);
        }
        if serving.silent.load(Ordering::Acquire) {
            return Err(Code::NotReady);
        }
        Ok(serving)
    }

    /// Who answers, for `GetInfo` and the opening of streams: as far as it is known.
    pub(crate) fn identity(&self) -> Identity {
        match &*self.phase.read() {
            Phase::Serving(s) | Phase::Draining(Some(s)) => convert::identity(s.cluster, s.id, s.incarnation),
            Phase::Starting | Phase::Draining(None) => {
                self.found.read().map_or_else(Identity::default, |(id, cluster)| Identity {
                    cluster: cluster.map(|c| c.0.as_bytes().to_vec()).unwrap_or_default(),
                    bookie: id.0.as_bytes().to_vec(),
                    incarnation: 0,
                })
            }
        }
    }

    /// The one that serves or has served.
    pub(crate) fn any_serving(&self) -> Option<Arc<Serving>> {
        match &*self.phase.read() {
            Phase::Serving(s) | Phase::Draining(Some(s)) => Some(s.clone()),
            Phase::Starting | Phase::Draining(None) => None,
        }
    }

    /// The lanes run.
    pub(crate) fn engine_runs(&self, engine: Engine) {
        let _once = self.engine.set(engine);
    }

    /// The engine, once its lanes run.
    pub(crate) fn engine(&self) -> Option<Engine> {
        self.engine.get().cloned()
    }

    /// A key of [`tidemill_runtime::Health`] that is this bookie's own: several may live in one process.
    pub(crate) fn health_key(&self, what: &str) -> String {
        format!("bookie/{}/{what}", self.config.name)
    }
}

impl Serving {
    /// A bookie in the state that the quorum named when its session was opened.
    pub(crate) fn new(
        engine: Engine,
        (cluster, id, incarnation): (ClusterId, BookieId, Incarnation),
        touches: Touches,
        lacs: Arc<LacWaiters>,
        state: BookieState,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine,
            cluster,
            id,
            incarnation,
            touches,
            lacs,
            state: RwLock::new(state),
            silent: AtomicBool::new(false),
        })
    }

    /// The state of the uuid as the quorum last told it.
    pub(crate) fn state(&self) -> BookieState {
        *self.state.read()
    }

    /// The quorum told another state. A lost or retired uuid answers nobody.
    pub(crate) fn set_state(&self, state: BookieState) {
        let old = std::mem::replace(&mut *self.state.write(), state);
        if old != state {
            tracing::info!(?old, new = ?state, "the quorum changed this bookie's state");
        }
        self.silent.store(matches!(state, BookieState::Lost | BookieState::Retired), Ordering::Release);
    }
}
