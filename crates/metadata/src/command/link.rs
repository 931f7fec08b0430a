//! `TakeOver`, `Roll`, `Append`: how a ledger comes into a chain (1.8).

use tidemill_types::meta::{Append, Change, CloseLedger, LinkLedger, Rejection, Reply, Roll, TakeOver};
use tidemill_types::{ChainElement, LedgerId, LedgerState, Offset, PartitionRecord, SessionId, Version};

use super::ledger_close::Closer;
use crate::State;
use crate::limits::MAX_CHAIN;
use crate::reject::{conflict, invalid};

/// Offset behind `records` records from `base` on.
pub(crate) fn end_of(base: Offset, records: u64) -> Result<Offset, Rejection> {
    base.0
        .checked_add_unsigned(records)
        .map(Offset)
        .ok_or_else(|| invalid("records", "beyond the largest offset"))
}

fn check_last(p: &PartitionRecord, ledger: LedgerId) -> Result<ChainElement, Rejection> {
    match p.chain.last() {
        Some(e) if e.ledger == ledger => Ok(e.clone()),
        Some(e) => Err(conflict(format_args!("the last ledger of {} is {}, not {ledger}", p.id, e.ledger))),
        None => Err(conflict(format_args!("the chain of {} is empty", p.id))),
    }
}

impl State {
    pub(crate) fn take_over(
        &mut self,
        session: SessionId,
        items: &[TakeOver],
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        Ok(Reply::Each(items.iter().map(|item| self.take_over_one(session, item, out)).collect()))
    }

    fn take_over_one(
        &mut self,
        session: SessionId,
        t: &TakeOver,
        out: &mut Vec<Change>,
    ) -> Result<(), Rejection> {
        let p = self.owned(t.partition, t.epoch, session)?.clone();
        self.close_and_link(p, &t.close, Closer::Recoverer, t.append, out).map(|_| ())
    }

    pub(crate) fn roll(
        &mut self,
        session: SessionId,
        r: &Roll,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let p = self.owned(r.partition, r.epoch, session)?.clone();
        if r.close.records == 0 {
            return Err(conflict("an empty ledger is never rolled: close it alone"));
        }
        self.close_and_link(p, &r.close, Closer::Writer, Some(r.append), out).map(Reply::Partition)
    }

    fn close_and_link(
        &mut self,
        p: PartitionRecord,
        close: &CloseLedger,
        closer: Closer,
        append: Option<LinkLedger>,
        out: &mut Vec<Change>,
    ) -> Result<PartitionRecord, Rejection> {
        let last = check_last(&p, close.ledger)?;
        let closing = self.check_close(close, closer)?;
        let base = end_of(last.base_offset, close.records)?;
        let linked = append.map(|link| self.check_link(&p, link, base)).transpose()?;
        self.put_closed(closing);
        let Some(new) = linked else { return Ok(p) };
        self.put_partition(new.clone(), out);
        Ok(new)
    }

    pub(crate) fn append(
        &mut self,
        session: SessionId,
        a: &Append,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let p = self.owned(a.partition, a.epoch, session)?;
        let base = match (a.prev, p.chain.last()) {
            (None, None) => p.log_start,
            // M22: without `prev` a delayed command would link behind a ledger that its sender never saw.
            (Some(prev), _) => {
                let last = check_last(p, prev)?;
                let l = self.find_ledger(prev)?;
                match (l.state, l.records) {
                    (LedgerState::Closed, Some(records)) => end_of(last.base_offset, records)?,
                    (state, _) => return Err(Rejection::LedgerState { ledger: prev, state }),
                }
            }
            (None, Some(e)) => {
                return Err(conflict(format_args!("the last ledger of {} is {}, not none", p.id, e.ledger)));
            }
        };
        let new = self.check_link(p, a.append, base)?;
        self.put_partition(new.clone(), out);
        Ok(Reply::Partition(new))
    }

    /// What every command that links L' asks (M23), and the partition after it. The caller has checked the epoch, and
    /// that the ledger before L' is closed or closes in the same command.
    fn check_link(
        &self,
        p: &PartitionRecord,
        link: LinkLedger,
        base: Offset,
    ) -> Result<PartitionRecord, Rejection> {
        let l = self.find_ledger(link.ledger)?;
        if l.partition != p.id || l.epoch != p.epoch {
            return Err(conflict(format_args!(
                "ledger {} was created for {} in epoch {}",
                l.id, l.partition, l.epoch
            )));
        }
        if p.chain.iter().any(|e| e.ledger == link.ledger) {
            return Err(conflict(format_args!("ledger {} stands in the chain already", l.id)));
        }
        if l.state != LedgerState::Open {
            return Err(Rejection::LedgerState { ledger: l.id, state: l.state });
        }
        if link.base_offset != base {
            return Err(conflict(format_args!("the base offset is {base}, not {}", link.base_offset)));
        }
        if p.chain.len() >= MAX_CHAIN {
            return Err(conflict(format_args!("at most {MAX_CHAIN} ledgers in a chain")));
        }
        let mut new = p.clone();
        new.version = Version(p.version.0 + 1);
        new.chain.push(ChainElement { ledger: link.ledger, base_offset: base });
        Ok(new)
    }
}
