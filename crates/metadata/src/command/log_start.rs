//! `AdvanceLogStart`: retention and deletion of records.

use tidemill_types::meta::{Change, Rejection, Reply};
use tidemill_types::{Epoch, LedgerState, Offset, PartitionId, SessionId, Version};

use crate::State;
use crate::reject::invalid;

impl State {
    /// Moves the start and takes ledgers wholly below it out of the chain, records and all (R20(a)). The last one stays
    /// whatever it holds: the state of producers and the fence of its writer live in it, and an `Append` that is under
    /// way names it.
    pub(crate) fn advance_log_start(
        &mut self,
        session: SessionId,
        partition: PartitionId,
        epoch: Epoch,
        to: Offset,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let p = self.owned(partition, epoch, session)?;
        if to <= p.log_start {
            return Ok(Reply::Partition(p.clone()));
        }
        let end = match p.chain.last() {
            None => Some(p.log_start),
            Some(e) => {
                let records = self.find_ledger(e.ledger)?.records;
                records.map(|r| Offset(e.base_offset.0.saturating_add_unsigned(r)))
            }
        };
        // The end of a ledger that is not closed is the owner's to know.
        if end.is_some_and(|end| to > end) {
            return Err(invalid("to", "beyond the end of the log"));
        }
        let mut gone = Vec::new();
        for pair in p.chain.windows(2) {
            let [e, next] = pair else { break };
            let closed = self.ledger(e.ledger).is_some_and(|l| l.state == LedgerState::Closed);
            if !closed || next.base_offset > to {
                break;
            }
            gone.push(e.ledger);
        }
        let mut new = p.clone();
        new.log_start = to;
        new.chain.drain(..gone.len());
        new.version = Version(p.version.0 + 1);
        for ledger in gone {
            self.drop_ledger(ledger);
        }
        self.put_partition(new.clone(), out);
        Ok(Reply::Partition(new))
    }
}
