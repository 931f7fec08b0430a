//! The leader's loops. They run while a term lasts and stop with it.

use std::{sync::Arc, time::Duration};

use openraft::async_runtime::WatchReceiver;
use parking_lot::Mutex;
use tidemill_metadata::State;
use tidemill_proto::meta as proto;
use tidemill_types::{
    MemberId, SessionId,
    meta::{BookieReport, Command, ControlAction, ControlCommand},
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::{
    AuditReport, auditor,
    clocks::Clocks,
    degraded::Degraded,
    keeper::{Keeper, Renewal},
    planner::Planner,
    purges::Purges,
    reports::Reports,
};
use crate::node::Node;

/// Looks at the sessions' deadlines so often.
const POLL: Duration = Duration::from_millis(100);
/// Bookies' reports are replicated at most so often.
const REPORT: Duration = Duration::from_secs(1);
/// Changes within this time make one plan.
const PLAN_DEBOUNCE: Duration = Duration::from_millis(20);
/// Pause after a proposal that failed while leading.
const PAUSE: Duration = Duration::from_millis(50);
/// Expiries that are proposed at once.
const EXPIRE_AT_ONCE: usize = 64;

/// What the leader keeps in memory; shared with the service, which feeds it.
#[derive(Debug)]
pub(crate) struct Duties {
    begin: Instant,
    keeper: Mutex<Keeper>,
    clocks: Mutex<Clocks>,
    reports: Mutex<Reports>,
    planner: Mutex<Planner>,
    degraded: Mutex<Degraded>,
    purges: Mutex<Purges>,
    /// What the auditor of this member's last term saw.
    pub(super) audit: Mutex<Option<AuditReport>>,
}

/// A renewal as it came.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) session: SessionId,
    pub(crate) member: MemberId,
    pub(crate) wall_ms: i64,
    pub(crate) report: Option<BookieReport>,
    /// Of a broker: its degraded ledgers.
    pub(crate) degraded: Option<u32>,
}

impl Duties {
    pub(crate) fn new(ttl: Duration, settle: Duration) -> Self {
        Self {
            begin: Instant::now(),
            keeper: Mutex::new(Keeper::new(ttl)),
            clocks: Mutex::default(),
            reports: Mutex::default(),
            planner: Mutex::new(Planner::new(settle)),
            degraded: Mutex::default(),
            purges: Mutex::default(),
            audit: Mutex::default(),
        }
    }

    /// The own monotonic clock. Time in which the machine is suspended does not count: being late is safe.
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// A session asks for a new TTL; leadership of `term` was proved after it came.
    pub(crate) fn renew(&self, node: &Node, term: u64, heard: Heard) -> Renewal {
        let now = self.now();
        let mut keeper = self.keeper.lock();
        // The first renewal of a term may come before the loops noticed that it began.
        if !keeper.lead(term, node.machine.state().sessions(), now) {
            return Renewal::OtherTerm;
        }
        // Looked up under the keeper's lock: an expiry is noted there before it is proposed, so a session that is live
        // here and not noted there has no expiry on its way.
        if !node.machine.with(|s| s.member(heard.member).is_some_and(|m| m.session == Some(heard.session))) {
            return Renewal::Gone;
        }
        let renewal = keeper.renew(term, heard.session, heard.member, now);
        drop(keeper);
        if matches!(renewal, Renewal::Renewed(_)) {
            self.clocks.lock().heard(heard.member, heard.wall_ms, now);
            if let Some(report) = heard.report {
                self.reports.lock().heard(report);
            }
            if let Some(ledgers) = heard.degraded {
                self.degraded.lock().heard(heard.member, ledgers, now);
            }
        }
        renewal
    }

    /// Degraded ledgers as brokers told lately.
    pub(crate) fn degraded(&self) -> Vec<proto::Degraded> {
        let told = self.degraded.lock().fresh(self.now());
        told.into_iter()
            .map(|(id, ledgers)| proto::Degraded { broker: id.0.as_bytes().to_vec(), ledgers })
            .collect()
    }

    /// What the auditor saw in its last pass; nothing before the first one of a term.
    pub(crate) fn audited(&self) -> Option<AuditReport> {
        *self.audit.lock()
    }

    /// Sessions that the keeper counts.
    pub(crate) fn sessions(&self) -> usize {
        self.keeper.lock().len()
    }
}

/// Does the duties of every term in which this member leads.
pub(crate) async fn run(node: Arc<Node>) {
    let mut metrics = node.raft.server_metrics();
    loop {
        let led = {
            let m = metrics.borrow_watched();
            m.state.is_leader().then_some(m.vote.leader_id.term)
        };
        let Some(term) = led else {
            if metrics.changed().await.is_err() {
                return;
            }
            continue;
        };
        // Everything up to the first entry of the own term is applied when this answers (M26).
        match node.check.wait().await {
            Ok(proved) if proved == term => {
                tracing::info!(term, "leads the metadata quorum");
                tokio::select! {
                    () = lead(&node, term) => {}
                    () = term_ends(&node, term) => tracing::info!(term, "leads no more"),
                }
            }
            _ => sleep(PAUSE).await,
        }
    }
}

async fn term_ends(node: &Node, term: u64) {
    let mut metrics = node.raft.server_metrics();
    loop {
        let goes_on = {
            let m = metrics.borrow_watched();
            m.state.is_leader() && m.vote.leader_id.term == term
        };
        if !goes_on || metrics.changed().await.is_err() {
            return;
        }
    }
}

async fn lead(node: &Arc<Node>, term: u64) {
    let d = &node.duties;
    if !d.keeper.lock().lead(term, node.machine.state().sessions(), d.now()) {
        return;
    }
    d.clocks.lock().restart();
    d.reports.lock().clear();
    d.degraded.lock().clear();
    d.purges.lock().clear();
    *d.audit.lock() = None;
    // Without a cluster there is nothing to do duties for.
    let mut applied = node.machine.subscribe();
    while node.machine.with(State::cluster).is_none() {
        if applied.changed().await.is_err() {
            return;
        }
    }
    tokio::join!(
        sessions(node, term),
        ticks(node, term),
        reports(node, term),
        plans(node, term),
        auditor::run(node, term)
    );
}

async fn sessions(node: &Arc<Node>, term: u64) {
    let mut every = interval(POLL.min(node.config.session_ttl() / 8));
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let state = node.machine.state();
        let due = node.duties.keeper.lock().poll(state.sessions(), node.duties.now());
        drop(state);
        for some in due.chunks(EXPIRE_AT_ONCE) {
            let proposals = some.iter().map(|&(session, member)| async move {
                tracing::warn!(%session, %member, "the session was not renewed in time");
                node.counters.expiries.inc();
                node.propose_own(Some(term), Command::ExpireSession { session, member }).await
            });
            futures::future::join_all(proposals).await;
        }
    }
}

async fn ticks(node: &Arc<Node>, term: u64) {
    loop {
        let tick = node.duties.clocks.lock().tick(node.clock.realtime_ms(), node.duties.now());
        if tick.jump {
            tracing::debug!(target: "tidemill_rare", "quorum time jumped");
        }
        let command = Command::Tick { wall_ms: tick.wall_ms, jump: tick.jump };
        if node.propose_own(Some(term), command).await {
            purges(node, term, tick.jump).await;
            sleep(Duration::from_millis(node.config.tick_ms)).await;
        } else {
            // Quorum time must exist before anything rests on it.
            sleep(PAUSE).await;
        }
    }
}

/// After each tick: removes the tombstones whose time has come.
async fn purges(node: &Arc<Node>, term: u64, jump: bool) {
    let state = node.machine.state();
    let wait = Duration::from_millis(node.config.purge_wait_ms);
    let due = node.duties.purges.lock().ticked(&state, jump, wait, node.duties.now());
    drop(state);
    for batch in due {
        tracing::info!(topics = batch.len(), "the time of deleted topics has come: their data is purged");
        let action = ControlAction::PurgeTopics(batch);
        node.propose_own(Some(term), Command::Control(ControlCommand { epoch: None, action })).await;
    }
}

async fn reports(node: &Arc<Node>, term: u64) {
    loop {
        sleep(REPORT).await;
        let batches = node.duties.reports.lock().changed(&node.machine.state());
        for batch in batches {
            node.propose_own(Some(term), Command::ReportBookies(batch)).await;
        }
    }
}

async fn plans(node: &Arc<Node>, term: u64) {
    let mut dirty = node.machine.plan_dirty();
    loop {
        dirty.borrow_and_update();
        let (n, state) = (node.clone(), node.machine.state());
        let planned = tidemill_runtime::work::blocking(move || {
            n.duties.planner.lock().plan(term, &state, n.duties.now())
        });
        let Ok(plan) = planned.await else { return };
        let mut done = true;
        for batch in plan.batches {
            done &= node.propose_own(Some(term), Command::Assign(batch)).await;
        }
        let now = node.duties.now();
        let again = if done { plan.again_at.map(|at| at.saturating_sub(now)) } else { Some(PAUSE) };
        tokio::select! {
            changed = dirty.changed() => {
                if changed.is_err() {
                    return;
                }
                sleep(PLAN_DEBOUNCE).await;
            }
            () = sleep(again.unwrap_or(Duration::ZERO)), if again.is_some() => {}
        }
    }
}
