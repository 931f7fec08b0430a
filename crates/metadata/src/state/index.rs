//! The only places that write records, so that what is derived from them never drifts.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemill_types::meta::Change;
use tidemill_types::{
    BookieId, LedgerId, LedgerRecord, Member, PartitionId, PartitionRecord, TopicControl, TopicRecord,
};

use super::State;

/// How often a ledger names each bookie: once per fragment, once for a repair.
pub(crate) fn names_of(ledger: &LedgerRecord) -> BTreeMap<BookieId, u32> {
    let mut names = BTreeMap::new();
    let members = ledger.fragments.iter().flat_map(|f| &f.ensemble);
    for b in members.chain(ledger.repair.as_ref().map(|r| &r.target)) {
        *names.entry(*b).or_insert(0) += 1;
    }
    names
}

impl State {
    pub(crate) fn put_member(&mut self, member: Member, out: &mut Vec<Change>) {
        out.push(Change::Member(member.clone()));
        self.members.insert(member.id, Arc::new(member));
    }

    pub(crate) fn put_topic(&mut self, topic: TopicRecord, out: &mut Vec<Change>) {
        out.push(Change::Topic(topic.clone()));
        self.names.insert(topic.name.clone(), topic.id);
        self.topics.insert(topic.id, Arc::new(topic));
    }

    /// Writes it with its next version, which is returned.
    pub(crate) fn put_control(&mut self, mut control: TopicControl, out: &mut Vec<Change>) -> TopicControl {
        control.version.0 += 1;
        out.push(Change::TopicControl(control.clone()));
        self.controls.insert(control.topic, Arc::new(control.clone()));
        control
    }

    pub(crate) fn put_partition(&mut self, partition: PartitionRecord, out: &mut Vec<Change>) {
        out.push(Change::Partition(partition.clone()));
        self.partitions.insert(partition.id, Arc::new(partition));
    }

    pub(crate) fn put_ledger(&mut self, ledger: LedgerRecord) {
        self.created_for.insert((ledger.partition, ledger.id), ());
        let (id, new) = (ledger.id, names_of(&ledger));
        if ledger.repair.is_some() {
            self.repairing.insert(id, ());
        } else {
            self.repairing.remove(&id);
        }
        let old = self.ledgers.insert(id, Arc::new(ledger)).map(|l| names_of(&l));
        self.recount(id, &old.unwrap_or_default(), &new);
    }

    pub(crate) fn drop_ledger(&mut self, id: LedgerId) {
        if let Some(old) = self.ledgers.remove(&id) {
            self.created_for.remove(&(old.partition, id));
            self.repairing.remove(&id);
            self.recount(id, &names_of(&old), &BTreeMap::new());
        }
    }

    /// The ledgers after `after` with a repair under way, in order of id.
    pub fn repairs(&self, after: Option<LedgerId>) -> impl Iterator<Item = &LedgerRecord> {
        let from = after.as_ref().map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.repairing.range(from).filter_map(|(id, ())| self.ledger(*id))
    }

    /// All ledgers that were created for a partition, in order of id.
    pub(crate) fn ledgers_created_for(&self, partition: PartitionId) -> Vec<LedgerId> {
        let from = (partition, LedgerId(0));
        self.created_for
            .range(std::ops::Bound::Included(&from))
            .map(|(key, ())| key)
            .take_while(|(p, _)| *p == partition)
            .map(|(_, l)| *l)
            .collect()
    }

    /// The ledgers after `after` that name a bookie, in order of id.
    pub(crate) fn ledgers_naming(
        &self,
        bookie: BookieId,
        after: Option<LedgerId>,
    ) -> impl Iterator<Item = &LedgerRecord> {
        let from = (bookie, after.unwrap_or(LedgerId(0)));
        self.named
            .range(std::ops::Bound::Included(&from))
            .map(|(key, _)| key)
            .take_while(move |(b, _)| *b == bookie)
            .filter(move |(_, l)| Some(*l) != after)
            .filter_map(|(_, l)| self.ledger(*l))
    }

    fn recount(&mut self, ledger: LedgerId, old: &BTreeMap<BookieId, u32>, new: &BTreeMap<BookieId, u32>) {
        if old == new {
            return;
        }
        for (b, n) in old {
            self.named.remove(&(*b, ledger));
            let left = self.named_count(*b) - u64::from(*n);
            if left == 0 {
                self.named_in_all.remove(b);
            } else {
                self.named_in_all.insert(*b, left);
            }
        }
        for (b, n) in new {
            self.named.insert((*b, ledger), *n);
            self.named_in_all.insert(*b, self.named_count(*b) + u64::from(*n));
        }
    }
}
