//! The closing half of `Close`, `Roll` and `TakeOver`, and `Close` alone.

use tidemill_types::meta::{CloseLedger, Rejection, Reply};
use tidemill_types::{EntryId, Epoch, Fragment, LedgerRecord, LedgerState, Offset, SessionId};

use super::fragments::{add_under, check_distinct, check_under, clip_under};
use super::link::end_of;
use crate::State;
use crate::limits::MAX_FRAGMENTS;
use crate::reject::{conflict, invalid};

/// Who closes: the state that the ledger must be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closer {
    /// Its writer: OPEN.
    Writer,
    /// A recoverer: IN_RECOVERY.
    Recoverer,
}

/// A close that passed its checks.
#[derive(Debug)]
pub(crate) enum Closing {
    /// CLOSED already, with the same end: nothing to write.
    Already,
    /// The record to write.
    Write(LedgerRecord),
}

impl State {
    pub(crate) fn close(
        &mut self,
        session: SessionId,
        close: &CloseLedger,
        epoch: Option<Epoch>,
    ) -> Result<Reply, Rejection> {
        let l = self.find_ledger(close.ledger)?;
        let closer = match epoch {
            Some(epoch) => {
                self.owned(l.partition, epoch, session)?;
                Closer::Writer
            }
            None => Closer::Recoverer,
        };
        match self.check_close(close, closer)? {
            Closing::Already => Ok(Reply::Ledger(self.find_ledger(close.ledger)?.clone())),
            Closing::Write(new) => {
                self.put_ledger(new.clone());
                Ok(Reply::Ledger(new))
            }
        }
    }

    pub(crate) fn put_closed(&mut self, closing: Closing) {
        if let Closing::Write(new) = closing {
            self.put_ledger(new);
        }
    }

    /// Checks a close and works out the record after it; writes nothing.
    pub(crate) fn check_close(&self, close: &CloseLedger, closer: Closer) -> Result<Closing, Rejection> {
        let l = self.find_ledger(close.ledger)?;
        let end = close.last_entry;
        // CLOSED is final: the same end is success, whatever the version; another one is never written.
        if l.state == LedgerState::Closed {
            let same = l.last_entry == Some(end)
                && l.length == Some(close.length)
                && l.records == Some(close.records);
            return if same { Ok(Closing::Already) } else { Err(Rejection::OtherEnd { ledger: l.id }) };
        }
        let needed = match closer {
            Closer::Writer => LedgerState::Open,
            Closer::Recoverer => LedgerState::InRecovery,
        };
        if l.state != needed {
            return Err(Rejection::LedgerState { ledger: l.id, state: l.state });
        }
        if l.version != close.version {
            return Err(Rejection::VersionMismatch { current: l.version });
        }
        check_end(close)?;
        // An end that no successor could be linked behind must not get into the record.
        let chain = self.partition(l.partition).map_or(&[][..], |p| &p.chain);
        let base = chain.iter().find(|e| e.ledger == l.id).map_or(Offset(0), |e| e.base_offset);
        end_of(base, close.records)?;
        let Some(last) = l.last_fragment() else {
            return Err(conflict("the ledger has no fragment"));
        };
        // A fragment starts behind what was acknowledged, so no true end lies below the last one's start (R6).
        if end < EntryId(last.first_entry.0 - 1) {
            return Err(invalid("last_entry", format_args!("at least {}", last.first_entry.0 - 1)));
        }
        check_under(&close.under, end)?;
        let mut new = l.clone();
        match closer {
            Closer::Writer if !close.fragments.is_empty() => {
                return Err(invalid("fragments", "only a recoverer brings any"));
            }
            Closer::Writer => {}
            Closer::Recoverer => {
                if !close.fragments.is_empty() {
                    self.merge_fragments(&mut new, close)?;
                }
                // Nobody has looked below recovery's base, and the dead writer's list is gone (1.6 step 7).
                new.unchecked = end != EntryId::NONE;
            }
        }
        add_under(&mut new.fragments, &close.under);
        clip_under(&mut new.fragments, end);
        new.state = LedgerState::Closed;
        new.last_entry = Some(end);
        new.length = Some(close.length);
        new.records = Some(close.records);
        new.version.0 += 1;
        Ok(Closing::Write(new))
    }

    /// R8: takes over what a recoverer changed from the last fragment on; everything before stays as it is.
    fn merge_fragments(&self, new: &mut LedgerRecord, close: &CloseLedger) -> Result<(), Rejection> {
        let older = new.fragments.len() - 1;
        let told = &close.fragments;
        if told.len() > MAX_FRAGMENTS {
            return Err(invalid("fragments", format_args!("at most {MAX_FRAGMENTS}")));
        }
        let same = |a: &Fragment, b: &Fragment| a.first_entry == b.first_entry && a.ensemble == b.ensemble;
        let Some(last) = new.fragments.pop() else { return Ok(()) };
        if told.len() <= older
            || !new.fragments.iter().zip(told).all(|(a, b)| same(a, b))
            || told[older].first_entry != last.first_entry
        {
            return Err(conflict("the fragments before the last differ from the record"));
        }
        for (i, f) in told.iter().enumerate().skip(older) {
            if f.ensemble.len() != last.ensemble.len() {
                return Err(invalid("fragments", format_args!("{} bookies in each", last.ensemble.len())));
            }
            check_distinct(&f.ensemble)?;
            check_under(&f.under, close.last_entry)?;
            if i > older
                && (f.first_entry <= told[i - 1].first_entry || f.first_entry > close.last_entry.next())
            {
                return Err(invalid("fragments", "in order, none beyond the end"));
            }
            for b in f.ensemble.iter().filter(|b| !last.ensemble.contains(b)) {
                let Some((_, count)) = close.limbo_counts.iter().find(|(named, _)| named == b) else {
                    return Err(invalid("limbo_counts", format_args!("none for {b}, which is newly named")));
                };
                self.check_nameable(*b, Some(*count))?;
            }
        }
        let mut changes = told.len() - older - 1;
        if told[older].ensemble != last.ensemble {
            changes += 1;
        }
        new.fragment_seq.0 += u32::try_from(changes).unwrap_or(u32::MAX);
        new.fragments.extend(told[older..].iter().map(|f| Fragment { under: Vec::new(), ..f.clone() }));
        add_under(&mut new.fragments, &last.under);
        for f in &told[older..] {
            add_under(&mut new.fragments, &f.under);
        }
        Ok(())
    }
}

fn check_end(close: &CloseLedger) -> Result<(), Rejection> {
    if close.last_entry < EntryId::NONE {
        return Err(invalid("last_entry", "at least -1"));
    }
    if close.last_entry == EntryId::NONE && (close.length, close.records) != (0, 0) {
        return Err(invalid("last_entry", "a ledger without entries has no bytes and no records"));
    }
    Ok(())
}
