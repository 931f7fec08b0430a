//! `ChangeEnsemble`: step 3 of a writer's ensemble change (1.4).

use tidemill_types::meta::{EnsembleChange, Rejection, Reply};
use tidemill_types::{EntryId, Fragment, LedgerState, Version};

use super::fragments::{add_under, check_distinct, check_under};
use crate::State;
use crate::limits::MAX_FRAGMENTS;
use crate::reject::{conflict, invalid};

impl State {
    pub(crate) fn change_ensemble(&mut self, c: &EnsembleChange) -> Result<Reply, Rejection> {
        let l = self.find_ledger(c.ledger)?;
        // The state before the version: a writer whose ledger is being recovered must learn that, not "try again".
        if l.state != LedgerState::Open {
            return Err(Rejection::LedgerState { ledger: l.id, state: l.state });
        }
        if l.version != c.version {
            return Err(Rejection::VersionMismatch { current: l.version });
        }
        let Some(last) = l.last_fragment() else {
            return Err(conflict("the ledger has no fragment"));
        };
        if c.first_entry < last.first_entry {
            return Err(invalid("first_entry", format_args!("at least {}", last.first_entry)));
        }
        check_replacement(&last.ensemble, c)?;
        check_under(&c.under, EntryId(c.first_entry.0 - 1))?;
        for (index, _) in &c.replaced {
            let new = c.ensemble[usize::from(*index)];
            // R22: a repair's target holds the ledger fenced.
            if l.repair.as_ref().is_some_and(|r| r.target == new) {
                return Err(Rejection::BookieNotEligible { bookie: new, why: "target of a repair".into() });
            }
            self.check_nameable(new, None)?;
        }
        let mut new = l.clone();
        let in_place = c.first_entry == last.first_entry;
        if !in_place && new.fragments.len() >= MAX_FRAGMENTS {
            return Err(conflict(format_args!("at most {MAX_FRAGMENTS} fragments; roll instead")));
        }
        match new.fragments.last_mut() {
            Some(f) if in_place => f.ensemble.clone_from(&c.ensemble),
            _ => new.fragments.push(Fragment {
                first_entry: c.first_entry,
                ensemble: c.ensemble.clone(),
                under: Vec::new(),
            }),
        }
        add_under(&mut new.fragments, &c.under);
        new.fragment_seq.0 += 1;
        new.version = Version(l.version.0 + 1);
        self.put_ledger(new.clone());
        Ok(Reply::Ledger(new))
    }
}

/// The new ensemble differs from the old one exactly at the named indexes, where the failed uuids still stand.
fn check_replacement(old: &[tidemill_types::BookieId], c: &EnsembleChange) -> Result<(), Rejection> {
    if c.ensemble.len() != old.len() {
        return Err(invalid("ensemble", format_args!("{} bookies, as before", old.len())));
    }
    check_distinct(&c.ensemble)?;
    if c.replaced.is_empty() {
        return Err(invalid("replaced", "at least one index"));
    }
    for (i, (before, after)) in old.iter().zip(&c.ensemble).enumerate() {
        let mut named = c.replaced.iter().filter(|(index, _)| usize::from(*index) == i);
        match (named.next(), named.next()) {
            (None, _) if before != after => {
                return Err(invalid("replaced", format_args!("index {i} differs and is not named")));
            }
            (None, _) => {}
            (Some(_), Some(_)) => return Err(invalid("replaced", "no index twice")),
            (Some((_, failed)), None) if failed != before => {
                return Err(conflict(format_args!("{before} stands at index {i}, not {failed}")));
            }
            (Some(_), None) if old.contains(after) => {
                return Err(invalid("ensemble", format_args!("{after} is a member already")));
            }
            (Some(_), None) => {}
        }
    }
    if c.replaced.iter().any(|(index, _)| usize::from(*index) >= old.len()) {
        return Err(invalid("replaced", format_args!("indexes below {}", old.len())));
    }
    Ok(())
}
