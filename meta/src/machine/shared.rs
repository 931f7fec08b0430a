//! The state that apply writes and everybody else reads.

use std::sync::Arc;

use parking_lot::Mutex;
use tidemill_metadata::State;
use tidemill_types::{
    MemberRole, Revision,
    meta::{Change, Watched},
};
use tokio::{sync::watch, time::Instant};

use super::ring::{Resume, Ring};
use crate::types::{Entry, LogId, Outcome, StoredMembership};

/// The replicated state with its watchers.
#[derive(Debug)]
pub(crate) struct Machine {
    inner: Mutex<Inner>,
    /// Index of the last applied entry; wakes watchers and the leader's duties.
    applied: watch::Sender<Revision>,
    /// Goes up when brokers or topics changed: work for the planner.
    plan_dirty: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    applied: Option<LogId>,
    membership: StoredMembership,
    ring: Ring,
    /// Quorum time as applied, and when.
    ticked: Option<(i64, Instant)>,
}

impl Machine {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner::default()),
            applied: watch::Sender::new(Revision(0)),
            plan_dirty: watch::Sender::new(0),
        })
    }

    /// Quorum time at this moment: the last applied tick and the own monotonic time since; 0 before the first.
    pub(crate) fn quorum_time(&self) -> i64 {
        let s = self.inner.lock();
        match s.ticked {
            Some((wall, at)) => wall.saturating_add(i64::try_from(at.elapsed().as_millis()).unwrap_or(0)),
            None => s.state.wall_ms(),
        }
    }

    /// A handle on the state as of now: a few reference counts.
    pub(crate) fn state(&self) -> State {
        self.inner.lock().state.clone()
    }

    /// Looks at the state while apply waits: for look-ups only.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.inner.lock().state)
    }

    /// State, applied log id and membership as of one moment.
    pub(super) fn cut(&self) -> (State, Option<LogId>, StoredMembership) {
        let s = self.inner.lock();
        (s.state.clone(), s.applied, s.membership.clone())
    }

    /// Last applied entry.
    pub(crate) fn applied(&self) -> Option<LogId> {
        self.inner.lock().applied
    }

    /// Membership as applied.
    pub(crate) fn membership(&self) -> StoredMembership {
        self.inner.lock().membership.clone()
    }

    /// Wakes with each applied batch.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Revision> {
        self.applied.subscribe()
    }

    /// Wakes when brokers or topics changed.
    pub(crate) fn plan_dirty(&self) -> watch::Receiver<u64> {
        self.plan_dirty.subscribe()
    }

    /// Events after `revision`, with the revision up to which they are complete.
    pub(crate) fn events_after(&self, revision: Revision, limit: usize) -> (Resume, Revision) {
        let s = self.inner.lock();
        let upto = Revision(s.applied.map_or(0, |a| a.index));
        (s.ring.after(revision, limit), upto)
    }

    /// Applies one entry.
    ///
    /// An entry that cannot be read is an error: skipping it would make this replica another one than the rest.
    pub(super) fn apply(&self, entry: &Entry) -> Result<Outcome, String> {
        let revision = Revision(entry.log_id.index);
        let mut s = self.inner.lock();
        let outcome = match &entry.payload {
            openraft::EntryPayload::Blank => {
                s.state.advance(revision);
                None
            }
            openraft::EntryPayload::Membership(m) => {
                s.state.advance(revision);
                s.membership = StoredMembership::new(Some(entry.log_id), m.clone());
                None
            }
            openraft::EntryPayload::Normal(proposal) => {
                let request = tidemill_metadata::decode_request(&proposal.0)
                    .map_err(|e| format!("log entry {revision}: {e}"))?;
                if let Some(level) = tidemill_metadata::unknown_level(&request) {
                    return Err(format!(
                        "log entry {revision}: feature level {level} is not known to this binary, install a newer one"
                    ));
                }
                let applied = s.state.apply(revision, &request);
                if applied.changes.iter().any(|c| matches!(c, Change::Time(_))) {
                    s.ticked = Some((s.state.wall_ms(), Instant::now()));
                }
                if applied.changes.iter().any(matters_to_the_plan) {
                    self.plan_dirty.send_modify(|v| *v += 1);
                }
                if !applied.changes.is_empty() {
                    s.ring.push(&Watched { revision, changes: applied.changes });
                }
                Some(applied.result)
            }
        };
        s.applied = Some(entry.log_id);
        Ok(Outcome(outcome))
    }

    /// Tells that everything applied so far can be seen.
    pub(super) fn announce(&self) {
        let at = Revision(self.inner.lock().applied.map_or(0, |a| a.index));
        self.applied.send_if_modified(|v| {
            let news = *v != at;
            *v = at;
            news
        });
    }

    /// Replaces everything by a snapshot.
    pub(super) fn replace(&self, state: State, applied: Option<LogId>, membership: StoredMembership) {
        let mut s = self.inner.lock();
        s.ring.reset(Revision(applied.map_or(0, |a| a.index)));
        let old = std::mem::replace(&mut s.state, state);
        s.applied = applied;
        s.membership = membership;
        drop(s);
        drop(old);
        self.plan_dirty.send_modify(|v| *v += 1);
        self.announce();
    }
}

fn matters_to_the_plan(change: &Change) -> bool {
    match change {
        Change::Topic(_) | Change::TopicRemoved(_) | Change::MemberRemoved(_) => true,
        Change::Member(m) => m.role == MemberRole::Broker,
        Change::Partition(_)
        | Change::PartitionRemoved(_)
        | Change::Time(_)
        | Change::Group(_)
        | Change::GroupRemoved(_)
        | Change::TopicControl(_) => false,
    }
}
