//! Linearizable reads; that the state is recent enough is the server's care.

use std::ops::Bound;

use tidemill_types::meta::{Answer, ClusterInfo, MetaView, PartitionView, Query};
use tidemill_types::{GroupRecord, LedgerId, LedgerRecord, PartitionId, TopicRecord};

use super::State;
use crate::limits::MAX_PAGE;

pub(super) fn page(limit: u32) -> usize {
    limit.clamp(1, MAX_PAGE) as usize
}

pub(super) fn after<T>(key: &Option<T>) -> Bound<&T> {
    key.as_ref().map_or(Bound::Unbounded, Bound::Excluded)
}

impl State {
    /// Answers a query. A `limit` outside 1..=10 000 is taken as the nearer end.
    #[must_use]
    pub fn query(&self, query: &Query) -> Answer {
        match query {
            Query::Cluster => Answer::Cluster(self.cluster_info()),
            Query::Members => Answer::Members(self.members().cloned().collect()),
            Query::TopicByName(name) => {
                Answer::Topic(self.names.get(name).and_then(|id| self.topic(*id)).cloned())
            }
            Query::Topic(id) => Answer::Topic(self.topic(*id).cloned()),
            Query::Topics { after: from, limit } => Answer::Topics(
                self.topics
                    .range(after(from))
                    .map(|(_, t)| TopicRecord::clone(t))
                    .take(page(*limit))
                    .collect(),
            ),
            Query::Partition(id) => Answer::Partition(self.partition_view(*id)),
            Query::Ledger(id) => Answer::Ledger(self.ledger(*id).cloned()),
            Query::LedgersOf { bookie, after, limit } => {
                Answer::Ledgers(self.ledgers_naming(*bookie, *after).take(page(*limit)).cloned().collect())
            }
            Query::Ledgers { after, limit } => Answer::Ledgers(self.ledgers_after(*after, *limit)),
            Query::View => Answer::View(self.view()),
            Query::Group(name) => Answer::Group(self.group(name).cloned()),
            Query::Groups { after: from, limit } => Answer::Groups(
                self.groups
                    .range(after(from))
                    .map(|(_, g)| GroupRecord::clone(g))
                    .take(page(*limit))
                    .collect(),
            ),
            Query::Control(q) => Answer::Control(self.control_query(q)),
            Query::Repairs { worker, after, limit } => Answer::Ledgers(
                self.repairs(*after)
                    .filter(|l| worker.is_none_or(|w| l.repair.as_ref().is_some_and(|r| r.worker == w)))
                    .take(page(*limit))
                    .cloned()
                    .collect(),
            ),
        }
    }

    /// Everything that a watch follows, as of now.
    #[must_use]
    pub fn view(&self) -> MetaView {
        MetaView {
            revision: self.counters.revision,
            cluster: self.counters.cluster,
            wall_ms: self.counters.wall_ms,
            members: self.members().cloned().collect(),
            topics: self.topics().cloned().collect(),
            partitions: self.partitions().cloned().collect(),
            groups: self.groups().cloned().collect(),
        }
    }

    fn cluster_info(&self) -> ClusterInfo {
        ClusterInfo {
            cluster: self.counters.cluster,
            feature_level: self.counters.feature_level,
            next_ledger: LedgerId(self.counters.next_ledger),
            wall_ms: self.counters.wall_ms,
            revision: self.counters.revision,
            counts: (self.topics.len() as u64, self.partitions.len() as u64, self.ledgers.len() as u64),
        }
    }

    fn partition_view(&self, id: PartitionId) -> Option<PartitionView> {
        let partition = self.partition(id)?.clone();
        let ledgers = partition.chain.iter().filter_map(|e| self.ledger(e.ledger)).cloned().collect();
        let owner_live = partition.owner.is_some_and(|o| self.is_live(o.session));
        Some(PartitionView { partition, ledgers, owner_live })
    }

    fn ledgers_after(&self, from: Option<LedgerId>, limit: u32) -> Vec<LedgerRecord> {
        self.ledgers.range(after(&from)).map(|(_, l)| LedgerRecord::clone(l)).take(page(limit)).collect()
    }
}
