//! `CreateLedger` and `RemoveLedger`.

use tidemill_types::meta::{CreateLedger, Rejection, Reply};
use tidemill_types::{
    EntryId, Fragment, FragmentSeq, LedgerId, LedgerRecord, LedgerState, Replication, SessionId, Version,
};

use super::fragments::check_distinct;
use crate::State;
use crate::reject::{conflict, invalid};

impl State {
    pub(crate) fn create_ledger(&mut self, session: SessionId, c: &CreateLedger) -> Result<Reply, Rejection> {
        let copies = u8::try_from(c.ensemble.len()).unwrap_or(u8::MAX);
        if !(Replication { copies, ack_quorum: c.ack_quorum }).is_valid() {
            return Err(invalid("ensemble", "1 <= ack quorum <= bookies <= 7"));
        }
        check_distinct(&c.ensemble)?;
        self.owned(c.partition, c.epoch, session)?;
        for b in &c.ensemble {
            self.check_nameable(*b, None)?;
        }
        let ledger = LedgerRecord {
            id: LedgerId(self.counters.next_ledger),
            version: Version(1),
            partition: c.partition,
            epoch: c.epoch,
            ack_quorum: c.ack_quorum,
            state: LedgerState::Open,
            last_entry: None,
            length: None,
            records: None,
            fragments: vec![Fragment {
                first_entry: EntryId::FIRST,
                ensemble: c.ensemble.clone(),
                under: Vec::new(),
            }],
            fragment_seq: FragmentSeq(0),
            unchecked: false,
            repair: None,
            created_ms: self.counters.wall_ms,
        };
        self.counters.next_ledger += 1;
        self.put_ledger(ledger.clone());
        Ok(Reply::Ledger(ledger))
    }

    /// Only what can never be linked any more: in no chain, and of an older epoch.
    pub(crate) fn remove_ledger(&mut self, ledger: LedgerId, version: Version) -> Result<Reply, Rejection> {
        let l = self.find_ledger(ledger)?;
        let p = self.find_partition(l.partition)?;
        if p.chain.iter().any(|e| e.ledger == ledger) {
            return Err(conflict(format_args!("ledger {ledger} stands in the chain of {}", p.id)));
        }
        if l.epoch == p.epoch {
            return Err(conflict(format_args!("ledger {ledger} is of the current epoch of {}", p.id)));
        }
        if l.version != version {
            return Err(Rejection::VersionMismatch { current: l.version });
        }
        self.drop_ledger(ledger);
        Ok(Reply::Done)
    }
}
