//! `StartRepair`, `FinishRepair`, `MarkChecked`: the auditor's commands (R22, R23).

use tidemill_types::meta::{FinishRepair, Rejection, RepairOutcome, Reply, StartRepair};
use tidemill_types::{
    BookieId, BookieState, EntryId, LedgerId, LedgerRecord, LedgerState, MemberRole, Repair, Replication,
    Version,
};

use crate::State;
use crate::reject::{conflict, invalid, not_found};

impl State {
    fn find_for_repair(&self, ledger: LedgerId, version: Version) -> Result<&LedgerRecord, Rejection> {
        let l = self.find_ledger(ledger)?;
        if l.version == version { Ok(l) } else { Err(Rejection::VersionMismatch { current: l.version }) }
    }

    fn put_repaired(&mut self, mut new: LedgerRecord) -> Reply {
        new.version.0 += 1;
        self.put_ledger(new.clone());
        Reply::Ledger(new)
    }

    pub(crate) fn start_repair(&mut self, s: &StartRepair) -> Result<Reply, Rejection> {
        let l = self.find_for_repair(s.ledger, s.version)?;
        if l.repair.is_some() {
            return Err(conflict("a repair is under way; several may not overlap"));
        }
        // R22: the last fragment of a ledger that is not closed is its writer's, or its recoverer's.
        if l.state != LedgerState::Closed && l.fragments.len() < 2 {
            return Err(Rejection::LedgerState { ledger: l.id, state: l.state });
        }
        if l.names(s.target) {
            self.check_fillable(s.target, s.limbo_count)?;
        } else {
            self.check_nameable(s.target, Some(s.limbo_count))?;
        }
        let mut new = l.clone();
        new.repair = Some(Repair {
            target: s.target,
            limbo_count: s.limbo_count,
            worker: s.worker,
            since_ms: self.counters.wall_ms,
        });
        Ok(self.put_repaired(new))
    }

    /// A member of a fragment is filled up in any state in which it answers.
    fn check_fillable(&self, bookie: BookieId, limbo_count: u32) -> Result<(), Rejection> {
        let m = self.member(bookie).filter(|m| m.role == MemberRole::Bookie);
        let m = m.ok_or_else(|| not_found("bookie", bookie))?;
        let no = |why: String| Err(Rejection::BookieNotEligible { bookie, why });
        match m.state {
            BookieState::Lost | BookieState::Retired => no(format!("{:?}", m.state)),
            _ if m.limbo_count != limbo_count => no("it has been in limbo since it was chosen".into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn finish_repair(&mut self, f: &FinishRepair) -> Result<Reply, Rejection> {
        let l = self.find_for_repair(f.ledger, f.version)?;
        let Some(repair) = l.repair.as_ref().filter(|r| r.target == f.target) else {
            return Err(conflict(format_args!("no repair with the target {} is under way", f.target)));
        };
        let mut new = l.clone();
        new.repair = None;
        match &f.outcome {
            RepairOutcome::Abandoned => {}
            // R23: what the target got may be gone when it has been in limbo since.
            RepairOutcome::Filled => self.check_fillable(f.target, repair.limbo_count)?,
            RepairOutcome::Replaced { from, fragments } => {
                self.check_nameable(f.target, Some(repair.limbo_count))?;
                swap(&mut new, fragments, f.target, Some(*from))?;
            }
            RepairOutcome::Grown { fragments } => {
                if l.state != LedgerState::Closed {
                    return Err(Rejection::LedgerState { ledger: l.id, state: l.state });
                }
                self.check_nameable(f.target, Some(repair.limbo_count))?;
                swap(&mut new, fragments, f.target, None)?;
            }
        }
        Ok(self.put_repaired(new))
    }

    pub(crate) fn mark_checked(&mut self, ledger: LedgerId, version: Version) -> Result<Reply, Rejection> {
        let l = self.find_for_repair(ledger, version)?;
        if l.state != LedgerState::Closed {
            return Err(Rejection::LedgerState { ledger, state: l.state });
        }
        if l.repair.is_some() {
            return Err(conflict("a repair is under way"));
        }
        let mut new = l.clone();
        new.unchecked = false;
        for f in &mut new.fragments {
            f.under.clear();
        }
        if new == *l {
            return Ok(Reply::Ledger(new));
        }
        Ok(self.put_repaired(new))
    }
}

/// Puts `target` into the fragments that start at `firsts`: in `from`'s place, or as one more member. `under` stays: a
/// change of membership clears no entry (1.6 step 7).
fn swap(
    l: &mut LedgerRecord,
    firsts: &[EntryId],
    target: BookieId,
    from: Option<BookieId>,
) -> Result<(), Rejection> {
    if firsts.is_empty() || !firsts.is_sorted_by(|a, b| a < b) {
        return Err(invalid("fragments", "at least one, in order"));
    }
    for first in firsts {
        let Some(i) = l.fragments.iter().position(|f| f.first_entry == *first) else {
            return Err(not_found("fragment", first));
        };
        if l.state != LedgerState::Closed && i + 1 == l.fragments.len() {
            return Err(Rejection::LedgerState { ledger: l.id, state: l.state });
        }
        let ensemble = &mut l.fragments[i].ensemble;
        if ensemble.contains(&target) {
            return Err(conflict(format_args!("{target} is a member of fragment {first} already")));
        }
        match from {
            Some(from) => match ensemble.iter_mut().find(|b| **b == from) {
                Some(slot) => *slot = target,
                None => return Err(conflict(format_args!("{from} is no member of fragment {first}"))),
            },
            None if ensemble.len() >= usize::from(Replication::MAX_COPIES) => {
                return Err(conflict("no more copies than the largest ensemble has"));
            }
            None => ensemble.push(target),
        }
        l.fragment_seq.0 += 1;
    }
    Ok(())
}
