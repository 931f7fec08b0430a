//! The coordinators of consumer groups: one per owned partition of the offsets topic.
//!
//! [`keep`] follows what this broker owns and starts a task ([`runner`]) for each such partition; it replays the log, then
//! takes operations. Their records are appended in one entry for all that came together, and answers are given when that is
//! durable. A coordinator whose append failed is thrown away and loaded again: nothing of it was told to anybody.

mod ends;
mod internal;
mod keeper;
pub(crate) mod lag;
mod load;
mod records;
mod runner;
mod view;

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, RwLock};
use tidemill_group::{Coordinator, GroupError, MemberId, Now, Outcome};
use tidemill_partition_log::PartitionLog;
use tidemill_record::partition_for_key;
use tidemill_types::{Epoch, ErrorCode, GroupName, PartitionId};
use tokio::sync::{Notify, mpsc, oneshot, watch};

pub(crate) use self::{
    ends::{Ask, Ends, list, ranges},
    internal::offsets_topic,
    keeper::keep,
    view::View,
};
use crate::{
    core::Core,
    deadline::Deadline,
    fault::{Fault, shown},
    route::{Topic, name_of},
};

/// Longest wait for a coordinator that is being loaded when the caller set no earlier deadline.
const LOAD_WAIT: std::time::Duration = std::time::Duration::from_secs(5);
/// Operations that wait for one coordinator; more are refused.
const QUEUE: usize = 4_096;

/// Tells whether an operation's records are durable; gives its answer then.
type Release = Box<dyn FnOnce(Option<Fault>) + Send>;
/// An operation on a coordinator.
type Operation = Box<dyn FnOnce(&mut Coordinator, Now) -> (tidemill_group::Effects, Release) + Send>;

/// Where a coordinator stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Loading,
    Serving,
    /// The log cannot be read; told to every caller.
    Broken(String),
}

/// A coordinator of this broker.
#[derive(Clone)]
pub(crate) struct Handle {
    log: Arc<PartitionLog>,
    operations: mpsc::Sender<Operation>,
    stage: watch::Receiver<Stage>,
    news: Arc<News>,
}

/// Who waits for news of members.
#[derive(Default)]
struct News(Mutex<HashMap<(GroupName, MemberId), Arc<Notify>>>);

/// All coordinators of this broker, and what they share.
pub(crate) struct Groups {
    handles: RwLock<HashMap<PartitionId, Handle>>,
    changed: watch::Sender<u64>,
    view: watch::Sender<View>,
    pub(crate) ends: Ends,
}

impl Default for Groups {
    fn default() -> Self {
        Self {
            handles: RwLock::default(),
            changed: watch::Sender::new(0),
            view: watch::Sender::new(View::default()),
            ends: Ends::default(),
        }
    }
}

/// A valid group name.
///
/// # Errors
/// `INVALID_GROUP_NAME` with the rule.
pub(crate) fn group_name(name: &str) -> Result<GroupName, Fault> {
    GroupName::new(name).map_err(|_| {
        let allowed = "1 to 249 printable ASCII characters without a space";
        Fault::field(ErrorCode::InvalidGroupName, "group", &format!("{} is given", shown(name)), allowed)
    })
}

/// The partition of the offsets topic that a group belongs to.
pub(crate) fn partition_of(topic: &Topic, group: &GroupName) -> PartitionId {
    PartitionId { topic: topic.id, index: partition_for_key(group.as_str().as_bytes(), topic.count) }
}

impl Groups {
    /// The coordinator of a group, when that is this broker; waits for one that is being loaded, at most until `deadline`.
    ///
    /// # Errors
    /// `NOT_OWNER` with the coordinator, `NO_OWNER`, `NOT_READY`. Nothing was done.
    pub(crate) async fn coordinator(
        core: &Arc<Core>,
        group: &GroupName,
        deadline: Deadline,
    ) -> Result<Handle, Fault> {
        let deadline = deadline.at_most(LOAD_WAIT);
        let topic = offsets_topic(core, deadline).await?;
        let id = partition_of(&topic, group);
        let log = core.ready_log(&topic, id, 0, deadline).await?;
        let mut changed = core.groups.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let here = core.groups.handles.read().get(&id).filter(|h| h.log.epoch() == log.epoch()).cloned();
            if let Some(handle) = here {
                return handle.ready(deadline).await;
            }
            // The keeper has not seen it yet, or it loads again after a failure.
            if !matches!(deadline.bound(changed.changed()).await, Ok(Ok(()))) {
                return Err(loading(&name_of(&topic, id)));
            }
        }
    }

    /// The coordinators of this broker, with their partitions' indexes.
    pub(crate) fn all(&self) -> Vec<(u32, Handle)> {
        self.handles.read().iter().map(|(id, h)| (id.index, h.clone())).collect()
    }

    fn put(&self, id: PartitionId, handle: Handle) {
        self.handles.write().insert(id, handle);
        self.bump();
    }

    fn remove(&self, id: PartitionId, epoch: Epoch) {
        let mut handles = self.handles.write();
        if handles.get(&id).is_some_and(|h| h.log.epoch() == epoch) {
            handles.remove(&id);
        }
        drop(handles);
        self.bump();
    }

    fn bump(&self) {
        self.changed.send_modify(|v| *v = v.wrapping_add(1));
    }
}

/// While it loads the answer is "retry", never "no offset" (2.2).
fn loading(partition: &str) -> Fault {
    Fault::not_ready(&format!("the coordinator in {partition} is being loaded"))
}

impl Handle {
    async fn ready(self, deadline: Deadline) -> Result<Self, Fault> {
        let mut stage = self.stage.clone();
        let wait = deadline.bound(stage.wait_for(|s| *s != Stage::Loading)).await;
        match wait.map(|r| r.map(|s| s.clone())) {
            Ok(Ok(Stage::Serving)) => Ok(self),
            Ok(Ok(Stage::Broken(why))) => Err(Fault::new(ErrorCode::Corrupt, why)),
            _ => Err(loading(&self.log.id().to_string())),
        }
    }

    /// Runs an operation and gives its answer when its records are durable; one without records is answered after a check
    /// of ownership that began after it came (metadata, Sessions).
    ///
    /// # Errors
    /// The coordinator moved or failed: `NOT_OWNER` and the like say that nothing was done, `OUTCOME_UNKNOWN` that nobody
    /// knows. Refusals of the operation are in the inner result.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        deadline: Deadline,
        op: impl FnOnce(&mut Coordinator, Now) -> Outcome<T> + Send + 'static,
    ) -> Result<Result<T, GroupError>, Fault> {
        let (tx, rx) = oneshot::channel();
        let operation: Operation = Box::new(move |c, now| {
            let Outcome { effects, answer } = op(c, now);
            let release: Release = Box::new(move |failed| {
                // A caller that gave up is nobody to tell.
                drop(tx.send(failed.map_or(Ok(answer), Err)));
            });
            (effects, release)
        });
        match self.operations.try_send(operation) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                return Err(Fault::overloaded("too many operations wait for this coordinator"));
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(loading(&self.log.id().to_string())),
        }
        match deadline.bound(rx).await {
            Err(_) => Err(Fault::deadline_unknown()),
            Ok(Ok(answer)) => answer,
            // The coordinator ended with the operation in its queue or on its way.
            Ok(Err(_)) => Err(Fault::outcome_unknown("the coordinator ended")),
        }
    }

    /// A question: no records, the newest state.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        deadline: Deadline,
        question: impl FnOnce(&Coordinator) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let op = move |c: &mut Coordinator, _| Outcome {
            effects: tidemill_group::Effects::default(),
            answer: Ok(question(c)),
        };
        match self.run(deadline, op).await? {
            Ok(answer) => Ok(answer),
            Err(e) => Err(Fault::internal("ask a coordinator", &e.to_string())),
        }
    }

    /// Wakes when the assignment of a member changed; the registration lives as long as the value.
    pub(crate) fn watch(&self, group: &GroupName, member: &MemberId) -> Watch {
        let key = (group.clone(), member.clone());
        let notify = self.news.0.lock().entry(key.clone()).or_default().clone();
        Watch { news: self.news.clone(), key, notify, closed: self.operations.clone() }
    }
}

/// A registration for news of one member.
pub(crate) struct Watch {
    news: Arc<News>,
    key: (GroupName, MemberId),
    notify: Arc<Notify>,
    closed: mpsc::Sender<Operation>,
}

impl Watch {
    /// Waits for news; false when the coordinator has ended.
    pub(crate) async fn changed(&self) -> bool {
        tokio::select! {
            () = self.notify.notified() => true,
            () = self.closed.closed() => false,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut news = self.news.0.lock();
        // Two: the table's and this one's.
        if news.get(&self.key).is_some_and(|n| Arc::ptr_eq(n, &self.notify) && Arc::strong_count(n) <= 2) {
            news.remove(&self.key);
        }
    }
}

impl News {
    fn tell(&self, who: &std::collections::BTreeSet<(GroupName, MemberId)>) {
        let news = self.0.lock();
        for key in who {
            if let Some(n) = news.get(key) {
                n.notify_one();
            }
        }
    }
}

/// What a client hears of a refused operation.
pub(crate) fn refused(group: &GroupName, e: &GroupError) -> Fault {
    match e {
        GroupError::Invalid { field, why } => Fault::field(e.code(), field, "not allowed", why),
        _ => {
            let fault = Fault::new(e.code(), format!("group {group}: {e}"));
            match e {
                GroupError::Fenced { epoch, .. } => fault.with("member_epoch", epoch.to_string()),
                _ => fault,
            }
        }
    }
}
