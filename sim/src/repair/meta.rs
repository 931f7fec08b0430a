//! The commands of repair, reduced to their conditions (R9, R23; metadata, Members).

use tidemill_types::{
    BookieId, BookieState, LedgerRecord, Repair, Version,
    meta::{FinishRepair, Rejection, RepairOutcome},
};

use super::state::Disk;
use crate::model::ledger::{number, uuid};

/// Switches for negative tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct WorldRules {
    /// The end of a repair is refused when its target has been in limbo since it was chosen (R23; off: M29).
    pub limbo_count: bool,
    /// The end of a repair is conditional on the record's version (R9).
    pub version: bool,
    /// A change of membership clears neither `unchecked` nor `under` (1.6 step 7).
    pub swap_keeps_marks: bool,
    /// A bookie that a repair names collects nothing of that ledger (R20).
    pub repair_protects: bool,
    /// Listings wait for a collection that has begun (R20; off: M30).
    pub listing_waits: bool,
    /// A bookie that something names is not retired (metadata, Members).
    pub retire_unnamed_only: bool,
}

impl Default for WorldRules {
    fn default() -> Self {
        Self {
            limbo_count: true,
            version: true,
            swap_keeps_marks: true,
            repair_protects: true,
            listing_waits: true,
            retire_unnamed_only: true,
        }
    }
}

fn disk(disks: &[Disk], b: BookieId) -> Option<&Disk> {
    disks.get(usize::from(number(b)))
}

fn refused(bookie: BookieId, why: &str) -> Rejection {
    Rejection::BookieNotEligible { bookie, why: why.to_owned() }
}

/// `StartRepair`.
pub(super) fn start(
    r: &mut LedgerRecord,
    disks: &[Disk],
    version: Version,
    target: BookieId,
    count: u32,
) -> bool {
    let named = r.names(target);
    let fits = disk(disks, target).is_some_and(|d| {
        let state = if named {
            !matches!(d.state, BookieState::Lost | BookieState::Retired)
        } else {
            d.state == BookieState::Rw
        };
        state && d.limbo_count == count
    });
    if r.repair.is_some() || r.version != version || !fits {
        return false;
    }
    r.repair = Some(Repair { target, limbo_count: count, worker: target, since_ms: 0 });
    r.version = Version(r.version.0 + 1);
    true
}

/// `FinishRepair`.
pub(super) fn finish(
    r: &mut LedgerRecord,
    disks: &[Disk],
    f: &FinishRepair,
    rules: WorldRules,
) -> Result<(), Rejection> {
    if rules.version && r.version != f.version {
        return Err(Rejection::VersionMismatch { current: r.version });
    }
    let Some(repair) = r.repair.clone().filter(|p| p.target == f.target) else {
        return Err(Rejection::Conflict { why: "no such repair".to_owned() });
    };
    let d = disk(disks, f.target).ok_or_else(|| refused(f.target, "unknown"))?;
    if f.outcome != RepairOutcome::Abandoned && rules.limbo_count && d.limbo_count != repair.limbo_count {
        return Err(refused(f.target, "it has been in limbo"));
    }
    match &f.outcome {
        RepairOutcome::Abandoned => {}
        RepairOutcome::Filled => {
            if matches!(d.state, BookieState::Lost | BookieState::Retired) {
                return Err(refused(f.target, "gone"));
            }
        }
        RepairOutcome::Replaced { .. } | RepairOutcome::Grown { .. } if d.state != BookieState::Rw => {
            return Err(refused(f.target, "not rw"));
        }
        RepairOutcome::Replaced { from, .. } => {
            let e = r.fragments.first_mut().map(|f| &mut f.ensemble);
            let slot = e.filter(|e| !e.contains(&f.target)).and_then(|e| e.iter_mut().find(|b| *b == from));
            let Some(slot) = slot else { return Err(Rejection::Conflict { why: "no member".to_owned() }) };
            *slot = f.target;
        }
        RepairOutcome::Grown { .. } => {
            if let Some(fr) = r.fragments.first_mut().filter(|fr| !fr.ensemble.contains(&f.target)) {
                fr.ensemble.push(f.target);
            }
        }
    }
    let swapped = matches!(f.outcome, RepairOutcome::Replaced { .. } | RepairOutcome::Grown { .. });
    if swapped && !rules.swap_keeps_marks {
        r.unchecked = false;
    }
    r.repair = None;
    r.version = Version(r.version.0 + 1);
    Ok(())
}

/// `MarkChecked`.
pub(super) fn mark_checked(r: &mut LedgerRecord, version: Version) {
    if r.version == version && r.repair.is_none() && r.unchecked {
        r.unchecked = false;
        r.version = Version(r.version.0 + 1);
    }
}

/// Whether the bookie may collect the ledger, as the record is now.
pub(super) fn collectable(r: &LedgerRecord, b: u8, rules: WorldRules) -> bool {
    let id = uuid(b);
    if rules.repair_protects { !r.names(id) } else { !r.fragments.iter().any(|f| f.ensemble.contains(&id)) }
}
