//! `StartRecovery` and `StartRecoveries`: OPEN to IN_RECOVERY (1.6 step 1).

use tidemill_types::meta::{RecoveryStart, Rejection, Reply};
use tidemill_types::{LedgerId, LedgerRecord, LedgerState, Version};

use crate::{State, state::RECOVERIES_LEVEL};

impl State {
    /// Several recoverers may join; from here on the writer's ensemble changes and close fail.
    pub(crate) fn start_recovery(&mut self, ledger: LedgerId, version: Version) -> Result<Reply, Rejection> {
        self.start_one(ledger, version).map(Reply::Ledger)
    }

    /// Many at once; what is refused of one says nothing of the others.
    pub(crate) fn start_recoveries(&mut self, items: &[RecoveryStart]) -> Result<Reply, Rejection> {
        let level = self.counters.feature_level;
        if level < RECOVERIES_LEVEL {
            return Err(Rejection::FeatureLevel { needed: RECOVERIES_LEVEL, level });
        }
        Ok(Reply::Ledgers(items.iter().map(|i| self.start_one(i.ledger, i.version)).collect()))
    }

    fn start_one(&mut self, ledger: LedgerId, version: Version) -> Result<LedgerRecord, Rejection> {
        let l = self.find_ledger(ledger)?;
        match l.state {
            LedgerState::Closed => Err(Rejection::LedgerState { ledger, state: l.state }),
            LedgerState::InRecovery => Ok(l.clone()),
            LedgerState::Open if l.version != version => {
                Err(Rejection::VersionMismatch { current: l.version })
            }
            LedgerState::Open => {
                let mut new = l.clone();
                new.state = LedgerState::InRecovery;
                new.version.0 += 1;
                self.put_ledger(new.clone());
                Ok(new)
            }
        }
    }
}
