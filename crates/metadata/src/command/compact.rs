//! `Compact`: what key compaction changes in a chain (2.7).

use tidemill_types::meta::{Change, Compaction, CompactionStep, MAX_BATCH, Rejection, Reply};
use tidemill_types::{ChainElement, LedgerId, LedgerState, Offset, PartitionRecord, SessionId, Version};

use super::link::end_of;
use crate::State;
use crate::reject::{conflict, invalid};

/// Feature level from which on key compaction is known.
pub(crate) const COMPACTION_LEVEL: u32 = 5;

impl State {
    pub(crate) fn check_compaction_level(&self) -> Result<(), Rejection> {
        let level = self.counters.feature_level;
        if level < COMPACTION_LEVEL {
            return Err(Rejection::FeatureLevel { needed: COMPACTION_LEVEL, level });
        }
        Ok(())
    }

    pub(crate) fn compact(
        &mut self,
        session: SessionId,
        c: &Compaction,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        self.check_compaction_level()?;
        let p = self.owned(c.partition, c.epoch, session)?.clone();
        match &c.step {
            CompactionStep::Swap { old, new } => self.swap(p, old, new, out),
            CompactionStep::Discard { ledgers } => self.discard(&p, ledgers),
        }
    }

    /// One list of ledgers for another (2.7). Everything is checked before anything is written; a second execution finds
    /// another list and is refused.
    fn swap(
        &mut self,
        mut p: PartitionRecord,
        old: &[LedgerId],
        new: &[LedgerId],
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        check_len("old", old, 1)?;
        check_len("new", new, 1)?;
        // The last one stays whatever it holds: an `Append` that is under way names it, and the newest state of the producers
        // may be in it.
        if old.len() >= p.chain.len()
            || !p.chain.iter().map(|e| e.ledger).take(old.len()).eq(old.iter().copied())
        {
            return Err(conflict(format_args!("the chain of {} does not begin with the old ledgers", p.id)));
        }
        let mut base = p.chain.first().map_or(Offset(0), |e| e.base_offset);
        let end = p.chain.get(old.len()).map_or(base, |e| e.base_offset);
        let mut chain = Vec::with_capacity(new.len() + p.chain.len() - old.len());
        for (i, id) in new.iter().enumerate() {
            let records = self.check_output(&p, *id)?;
            if new.get(..i).is_some_and(|before| before.contains(id)) {
                return Err(invalid("new", format_args!("ledger {id} is named twice")));
            }
            chain.push(ChainElement { ledger: *id, base_offset: base });
            base = end_of(base, records)?;
        }
        if base != end {
            return Err(conflict(format_args!("the new ledgers end at {base}, the old ones at {end}")));
        }
        chain.extend(p.chain.drain(old.len()..));
        p.chain = chain;
        p.version = Version(p.version.0 + 1);
        for ledger in old {
            self.drop_ledger(*ledger);
        }
        self.put_partition(p.clone(), out);
        Ok(Reply::Partition(p))
    }

    /// The offsets that a ledger covers, when it may be linked by a swap.
    fn check_output(&self, p: &PartitionRecord, id: LedgerId) -> Result<u64, Rejection> {
        let l = self.find_ledger(id)?;
        self.check_unlinked(p, id)?;
        match (l.state, l.records) {
            // One that covers nothing would share its base with the next one.
            (LedgerState::Closed, Some(0)) => {
                Err(invalid("new", format_args!("ledger {id} covers no offset")))
            }
            (LedgerState::Closed, Some(records)) => Ok(records),
            (state, _) => Err(Rejection::LedgerState { ledger: id, state }),
        }
    }

    fn check_unlinked(&self, p: &PartitionRecord, id: LedgerId) -> Result<(), Rejection> {
        let l = self.find_ledger(id)?;
        if l.partition != p.id || l.epoch != p.epoch {
            return Err(conflict(format_args!(
                "ledger {id} was created for {} in epoch {}",
                l.partition, l.epoch
            )));
        }
        if p.chain.iter().any(|e| e.ledger == id) {
            return Err(conflict(format_args!("ledger {id} stands in the chain already")));
        }
        Ok(())
    }

    fn discard(&mut self, p: &PartitionRecord, ledgers: &[LedgerId]) -> Result<Reply, Rejection> {
        check_len("ledgers", ledgers, 0)?;
        let there: Vec<LedgerId> = ledgers.iter().copied().filter(|id| self.ledger(*id).is_some()).collect();
        for id in &there {
            self.check_unlinked(p, *id)?;
        }
        for id in there {
            self.drop_ledger(id);
        }
        Ok(Reply::Done)
    }
}

fn check_len(field: &str, ledgers: &[LedgerId], least: usize) -> Result<(), Rejection> {
    if (least..=MAX_BATCH).contains(&ledgers.len()) {
        Ok(())
    } else {
        Err(invalid(field, format_args!("{least} to {MAX_BATCH} ledgers")))
    }
}
