//! Checks and changes of ensembles and `under` lists that several commands share.

use std::collections::BTreeSet;

use tidemill_types::meta::Rejection;
use tidemill_types::{BookieId, BookieState, EntryId, EntryRange, Fragment, MemberRole};

use crate::State;
use crate::limits::MAX_UNDER;
use crate::reject::invalid;

pub(crate) fn check_distinct(ensemble: &[BookieId]) -> Result<(), Rejection> {
    if ensemble.iter().collect::<BTreeSet<_>>().len() != ensemble.len() {
        return Err(invalid("ensemble", "no bookie twice"));
    }
    Ok(())
}

/// Ranges that a command brings: in order within themselves, from entry 0 up to and with `end`, not too many.
pub(crate) fn check_under(under: &[EntryRange], end: EntryId) -> Result<(), Rejection> {
    if under.len() > MAX_UNDER {
        return Err(invalid("under", format_args!("at most {MAX_UNDER} ranges")));
    }
    match under.iter().find(|r| r.first < EntryId::FIRST || r.last < r.first || r.last > end) {
        Some(r) => Err(invalid("under", format_args!("{}..={} is not within 0..={end}", r.first, r.last))),
        None => Ok(()),
    }
}

/// Adds ranges to the fragments that they lie in, joined where they touch.
pub(crate) fn add_under(fragments: &mut [Fragment], under: &[EntryRange]) {
    if under.is_empty() {
        return;
    }
    let ends: Vec<_> = fragments.iter().skip(1).map(|f| f.first_entry.prev()).collect();
    for (i, f) in fragments.iter_mut().enumerate() {
        let end = ends.get(i).copied().unwrap_or(EntryId(i64::MAX));
        for r in under {
            let cut = EntryRange { first: r.first.max(f.first_entry), last: r.last.min(end) };
            if cut.first <= cut.last {
                f.under.push(cut);
            }
        }
        normalise(&mut f.under);
    }
}

/// Cuts `under` lists off behind `end`: there is nothing to copy beyond it.
pub(crate) fn clip_under(fragments: &mut [Fragment], end: EntryId) {
    for f in fragments {
        f.under.retain_mut(|r| {
            r.last = r.last.min(end);
            r.first <= r.last
        });
    }
}

fn normalise(under: &mut Vec<EntryRange>) {
    under.sort_unstable();
    let mut joined: Vec<EntryRange> = Vec::with_capacity(under.len());
    for r in under.drain(..) {
        match joined.last_mut() {
            Some(l) if r.first.0 <= l.last.0.saturating_add(1) => l.last = l.last.max(r.last),
            _ => joined.push(r),
        }
    }
    // Too long a list becomes one range over all of it: more for the auditor to look at, never less.
    if joined.len() > MAX_UNDER
        && let (Some(a), Some(b)) = (joined.first(), joined.last())
    {
        joined = vec![EntryRange { first: a.first, last: b.last }];
    }
    *under = joined;
}

impl State {
    /// A command that newly names a uuid is refused unless it is `rw`, and where a limbo count was taken at the choice,
    /// unless it is still that one (R8, R23).
    pub(crate) fn check_nameable(&self, bookie: BookieId, limbo_count: Option<u32>) -> Result<(), Rejection> {
        let no = |why: String| Err(Rejection::BookieNotEligible { bookie, why });
        match self.member(bookie).filter(|m| m.role == MemberRole::Bookie) {
            None => no("no such bookie".into()),
            Some(m) if m.state != BookieState::Rw => no(format!("{:?}", m.state)),
            Some(m) if limbo_count.is_some_and(|c| c != m.limbo_count) => {
                no("it has been in limbo since it was chosen".into())
            }
            Some(_) => Ok(()),
        }
    }
}
