//! Starts a coordinator for every partition of the offsets topic that this broker serves, and keeps the view of all.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tidemill_partition_log::{LogState, PartitionLog};
use tidemill_types::{Epoch, OFFSETS_TOPIC, PartitionId};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{Handle, News, QUEUE, Stage, View, runner, view};
use crate::core::Core;

/// A coordinator that failed is loaded again after.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs until the broker ends.
pub(crate) async fn keep(core: Arc<Core>) {
    let mut events = core.mirror.events();
    let mut owned = core.owned.subscribe();
    let mut tasks: JoinSet<(PartitionId, Epoch)> = JoinSet::new();
    let mut running: HashMap<PartitionId, Epoch> = HashMap::new();
    let mut again: Option<Instant> = None;
    let mut ended_ones: Vec<(PartitionId, Epoch)> = Vec::new();
    refresh(&core);
    loop {
        owned.mark_unchanged();
        for log in serving(&core) {
            if running.get(&log.id()).is_none_or(|e| *e < log.epoch()) {
                running.insert(log.id(), log.epoch());
                start(&core, log, &mut tasks);
            }
        }
        tokio::select! {
            changed = owned.changed() => if changed.is_err() { return },
            event = events.next() => match event {
                Some(event) => if view::matters(&event) {
                    refresh(&core);
                },
                None => return,
            },
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => match ended {
                Ok((id, epoch)) => {
                    core.groups.remove(id, epoch);
                    // It stays among the running ones until the pause is over.
                    ended_ones.push((id, epoch));
                    again.get_or_insert(Instant::now() + PAUSE);
                }
                Err(error) => tracing::error!(%error, "a coordinator failed"),
            },
            () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {
                again = None;
                for (id, epoch) in ended_ones.drain(..) {
                    if running.get(&id) == Some(&epoch) {
                        running.remove(&id);
                    }
                }
            }
        }
    }
}

fn refresh(core: &Core) {
    let new = View::of(&core.mirror.table());
    core.groups.view.send_if_modified(|v| {
        let news = v.topics != new.topics || v.configs != new.configs;
        *v = new;
        news
    });
}

/// The logs of the offsets topic that serve here.
fn serving(core: &Core) -> Vec<Arc<PartitionLog>> {
    let Ok(topic) = core.topic(OFFSETS_TOPIC) else { return Vec::new() };
    let ids = (0..topic.count.get()).map(|index| PartitionId { topic: topic.id, index });
    ids.filter_map(|id| core.owned.log(id)).filter(|l| l.state() == LogState::Serving).collect()
}

fn start(core: &Arc<Core>, log: Arc<PartitionLog>, tasks: &mut JoinSet<(PartitionId, Epoch)>) {
    let (tx, operations) = mpsc::channel(QUEUE);
    let (stage_tx, stage) = watch::channel(Stage::Loading);
    let news = Arc::new(News::default());
    let (id, epoch) = (log.id(), log.epoch());
    let handle = Handle { log: log.clone(), operations: tx, stage, news: news.clone() };
    core.groups.put(id, handle);
    let runner = runner::Runner::new(core.clone(), log, operations, stage_tx, news);
    tasks.spawn(async move {
        runner.run().await;
        (id, epoch)
    });
}
