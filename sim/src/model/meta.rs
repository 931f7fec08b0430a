//! The metadata record of one ledger with its conditional commands (R9), reduced.

use tidemill_types::{
    EntryId, EntryRange, Fragment, FragmentSeq, LedgerRecord, LedgerState, Version,
    meta::{CloseLedger, EnsembleChange, Rejection},
};

/// Switches for negative tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaRules {
    /// A close is conditional on version and state, CLOSED is final (R9; off: M10).
    pub conditional_close: bool,
    /// Entries below Qw are listed at a change and at a close (1.3 step 6; off: M31).
    pub under_lists: bool,
}

impl Default for MetaRules {
    fn default() -> Self {
        Self { conditional_close: true, under_lists: true }
    }
}

fn version(r: &LedgerRecord, named: Version) -> Result<(), Rejection> {
    if r.version == named { Ok(()) } else { Err(Rejection::VersionMismatch { current: r.version }) }
}

fn state(r: &LedgerRecord, wanted: LedgerState) -> Result<(), Rejection> {
    if r.state == wanted { Ok(()) } else { Err(Rejection::LedgerState { ledger: r.id, state: r.state }) }
}

/// `StartRecovery`.
///
/// # Errors
/// As the quorum's.
pub fn start_recovery(r: &mut LedgerRecord, named: Version) -> Result<(), Rejection> {
    if r.state == LedgerState::InRecovery {
        return Ok(());
    }
    state(r, LedgerState::Open)?;
    version(r, named)?;
    r.state = LedgerState::InRecovery;
    r.version = Version(r.version.0 + 1);
    Ok(())
}

/// `ChangeEnsemble` (1.4 step 3).
///
/// # Errors
/// As the quorum's.
pub fn change(r: &mut LedgerRecord, c: &EnsembleChange, rules: MetaRules) -> Result<(), Rejection> {
    state(r, LedgerState::Open)?;
    version(r, c.version)?;
    store(r, c.first_entry, c.ensemble.clone());
    if rules.under_lists {
        list_under(r, &c.under);
    }
    r.version = Version(r.version.0 + 1);
    r.fragment_seq = FragmentSeq(r.fragment_seq.0 + 1);
    Ok(())
}

fn store(r: &mut LedgerRecord, first_entry: EntryId, ensemble: Vec<tidemill_types::BookieId>) {
    match r.fragments.last_mut() {
        Some(f) if f.first_entry == first_entry => f.ensemble = ensemble,
        _ => r.fragments.push(Fragment { first_entry, ensemble, under: Vec::new() }),
    }
}

/// Adds ranges to the fragments that they lie in.
fn list_under(r: &mut LedgerRecord, under: &[EntryRange]) {
    let ends: Vec<EntryId> = r.fragments.iter().skip(1).map(|f| f.first_entry.prev()).collect();
    for (i, f) in r.fragments.iter_mut().enumerate() {
        let end = ends.get(i).copied().unwrap_or(EntryId(i64::MAX));
        let cut =
            under.iter().map(|u| EntryRange { first: u.first.max(f.first_entry), last: u.last.min(end) });
        f.under.extend(cut.filter(|u| u.first <= u.last));
        f.under.sort_unstable();
        f.under.dedup();
    }
}

/// M5: a recoverer stores its fragments at once.
///
/// # Errors
/// As the quorum's.
pub fn store_fragments(
    r: &mut LedgerRecord,
    named: Version,
    fragments: &[Fragment],
) -> Result<(), Rejection> {
    state(r, LedgerState::InRecovery)?;
    version(r, named)?;
    r.fragments = fragments.to_vec();
    r.version = Version(r.version.0 + 1);
    Ok(())
}

/// `Close`, by the writer (needs OPEN) or a recoverer (needs IN_RECOVERY). The same end again is success.
///
/// # Errors
/// As the quorum's.
pub fn close(r: &mut LedgerRecord, c: &CloseLedger, writer: bool, rules: MetaRules) -> Result<(), Rejection> {
    if rules.conditional_close {
        if r.state == LedgerState::Closed {
            return if r.last_entry == Some(c.last_entry) && r.length == Some(c.length) {
                Ok(())
            } else {
                Err(Rejection::OtherEnd { ledger: r.id })
            };
        }
        state(r, if writer { LedgerState::Open } else { LedgerState::InRecovery })?;
        version(r, c.version)?;
    }
    r.state = LedgerState::Closed;
    r.last_entry = Some(c.last_entry);
    r.length = Some(c.length);
    if !c.fragments.is_empty() {
        r.fragments = c.fragments.clone();
    }
    r.unchecked = !writer;
    if rules.under_lists {
        list_under(r, &c.under);
    }
    r.version = Version(r.version.0 + 1);
    Ok(())
}
