//! `StartRecovery`: OPEN to IN_RECOVERY (1.6 step 1).

use tidemill_types::meta::{Rejection, Reply};
use tidemill_types::{LedgerId, LedgerState, Version};

use crate::State;

impl State {
    /// Several recoverers may join; from here on the writer's ensemble changes and close fail.
    pub(crate) fn start_recovery(&mut self, ledger: LedgerId, version: Version) -> Result<Reply, Rejection> {
        let l = self.find_ledger(ledger)?;
        match l.state {
            LedgerState::Closed => Err(Rejection::LedgerState { ledger, state: l.state }),
            LedgerState::InRecovery => Ok(Reply::Ledger(l.clone())),
            LedgerState::Open if l.version != version => {
                Err(Rejection::VersionMismatch { current: l.version })
            }
            LedgerState::Open => {
                let mut new = l.clone();
                new.state = LedgerState::InRecovery;
                new.version.0 += 1;
                self.put_ledger(new.clone());
                Ok(Reply::Ledger(new))
            }
        }
    }
}
