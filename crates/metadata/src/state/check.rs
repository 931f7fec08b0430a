//! What must hold in every state.

use std::collections::{BTreeMap, BTreeSet};

use tidemill_types::{LedgerRecord, LedgerState, PartitionRecord};

use super::State;
use super::index::names_of;

impl State {
    /// Checks every invariant and recounts everything that is kept incrementally. Walks the whole state.
    ///
    /// # Errors
    /// Which invariant is broken, and where.
    pub fn check(&self) -> Result<(), String> {
        self.check_topics()?;
        self.check_members()?;
        let mut linked = BTreeSet::new();
        for p in self.partitions() {
            self.check_chain(p)?;
            for e in &p.chain {
                if !linked.insert(e.ledger) {
                    return Err(format!("ledger {} stands in a chain twice", e.ledger));
                }
            }
        }
        let mut named = BTreeMap::new();
        let mut in_all = BTreeMap::new();
        for l in self.ledgers() {
            check_ledger(l)?;
            let Some(p) = self.partition(l.partition) else {
                return Err(format!("ledger {} belongs to no partition", l.id));
            };
            if l.epoch > p.epoch || l.id.0 >= self.counters.next_ledger {
                return Err(format!("ledger {} is of the future", l.id));
            }
            for (b, n) in names_of(l) {
                named.insert((b, l.id), n);
                *in_all.entry(b).or_insert(0u64) += u64::from(n);
            }
        }
        if !named.iter().eq(self.named.iter()) || !in_all.iter().eq(self.named_in_all.iter()) {
            return Err("the counts of named bookies differ from a recount".into());
        }
        let repairing: Vec<_> = self.ledgers().filter(|l| l.repair.is_some()).map(|l| l.id).collect();
        if !repairing.iter().eq(self.repairing.iter().map(|(id, ())| id)) {
            return Err("the ledgers under repair differ from a recount".into());
        }
        let created: BTreeSet<_> = self.ledgers().map(|l| (l.partition, l.id)).collect();
        if !created.iter().eq(self.created_for.iter().map(|(k, ())| k)) {
            return Err("the ledgers per partition differ from a recount".into());
        }
        Ok(())
    }

    fn check_topics(&self) -> Result<(), String> {
        let names: BTreeMap<_, _> = self.topics().map(|t| (t.name.clone(), t.id)).collect();
        if names.len() != self.topics.len() || !names.iter().eq(self.names.iter()) {
            return Err("the names of topics differ from a recount".into());
        }
        let wanted = self.topics().flat_map(|t| (0..t.partitions).map(|i| (t.id, i)));
        if !wanted.eq(self.partitions().map(|p| (p.id.topic, p.id.index))) {
            return Err("partitions differ from what the topics say".into());
        }
        for c in self.topic_controls() {
            if self.topic(c.topic).is_none() {
                return Err(format!("a claim or tombstone of topic {}, which is gone", c.topic));
            }
            if c.claim.is_some() && c.tombstone.is_some() {
                return Err(format!("the tombstone of topic {} is claimed", c.topic));
            }
        }
        Ok(())
    }

    fn check_members(&self) -> Result<(), String> {
        let by_member: BTreeMap<_, _> = self.sessions().map(|(s, m)| (m, s)).collect();
        if by_member.len() != self.sessions.len() {
            return Err("a member has two live sessions".into());
        }
        for m in self.members() {
            if m.session != by_member.get(&m.id).copied() {
                return Err(format!("member {} and its session differ", m.id));
            }
        }
        if let Some((id, _)) = self.sessions.iter().find(|(_, s)| !s.is_consistent()) {
            return Err(format!("the replies kept for session {id} contradict each other"));
        }
        let known = by_member.keys().all(|m| self.members.contains(m));
        known.then_some(()).ok_or_else(|| "a session of no member".into())
    }

    fn check_chain(&self, p: &PartitionRecord) -> Result<(), String> {
        let mut next = None;
        for (i, e) in p.chain.iter().enumerate() {
            let Some(l) = self.ledger(e.ledger) else {
                return Err(format!("chain of {} names ledger {}, which is gone", p.id, e.ledger));
            };
            if l.partition != p.id {
                return Err(format!("chain of {} has ledger {} of another partition", p.id, l.id));
            }
            if l.state != LedgerState::Closed && i + 1 != p.chain.len() {
                return Err(format!("chain of {} goes on after {}, which is not closed", p.id, l.id));
            }
            if next.is_some_and(|n| n != e.base_offset.0) {
                return Err(format!("base offset of ledger {} does not follow on", l.id));
            }
            next = l.records.and_then(|r| e.base_offset.0.checked_add_unsigned(r));
        }
        Ok(())
    }
}

fn check_ledger(l: &LedgerRecord) -> Result<(), String> {
    let bad = |why: &str| Err(format!("ledger {}: {why}", l.id));
    if l.fragments.first().is_none_or(|f| f.first_entry.0 != 0) {
        return bad("no fragment at entry 0");
    }
    if !l.fragments.is_sorted_by(|a, b| a.first_entry < b.first_entry) {
        return bad("fragments out of order");
    }
    let closed = l.state == LedgerState::Closed;
    if [l.last_entry.is_some(), l.length.is_some(), l.records.is_some()] != [closed; 3] {
        return bad("an end without CLOSED, or CLOSED without an end");
    }
    for (i, f) in l.fragments.iter().enumerate() {
        let distinct: BTreeSet<_> = f.ensemble.iter().collect();
        if distinct.len() != f.ensemble.len() || f.ensemble.len() < usize::from(l.ack_quorum) {
            return bad("an ensemble with a double or too few members");
        }
        let next = l.fragments.get(i + 1).map(|n| n.first_entry);
        let mut last = f.first_entry.prev();
        for r in &f.under {
            if r.first <= last || r.last < r.first {
                return bad("`under` ranges out of order");
            }
            last = r.last;
        }
        if !f.under.is_empty() && (next.is_some_and(|n| last >= n) || l.last_entry.is_some_and(|e| last > e))
        {
            return bad("`under` beyond its fragment or the end");
        }
    }
    Ok(())
}
