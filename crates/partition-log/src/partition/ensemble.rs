//! Creating L' ahead of its link (1.8).

use tidemill_ledger::{BookieTable, MetaError};
use tidemill_placement::choose_ensemble;
use tidemill_types::{
    BookieId, LedgerRecord, Member, MemberRole, SessionId,
    meta::{Command, CreateLedger, Rejection, Reply},
};

use super::{PartitionLog, Stop};

impl PartitionLog {
    /// A ledger of this epoch that is in no chain: the one that was created ahead, or a new one. A created ledger whose
    /// answer was lost is removed by the auditor.
    pub(super) async fn create_ledger(&self) -> Result<LedgerRecord, Stop> {
        if let Some(spare) = self.core.lock().spare.take() {
            return Ok(*spare);
        }
        let replication = self.core.lock().config.replication;
        let members = members(&self.ctx.meta.bookies().borrow());
        let hint = (self.id.topic.0 << 20) ^ u64::from(self.id.index) ^ (self.epoch.0 << 44);
        let ensemble = choose_ensemble(&members, replication, &[], hint, true)
            .map_err(|e| Stop::Retry(format!("no ensemble: {e}")))?;
        let command = Command::CreateLedger(CreateLedger {
            partition: self.id,
            epoch: self.epoch,
            ensemble,
            ack_quorum: replication.ack_quorum,
        });
        match self.ctx.meta.propose(command).await {
            Ok(Ok(Reply::Ledger(record))) => Ok(record),
            Ok(Ok(other)) => Err(Stop::Retry(format!("unexpected reply {other:?}"))),
            Ok(Err(r)) => Err(Stop::from(r)),
            Err(e) => Err(Stop::from(e)),
        }
    }
}

/// The table as the planner takes it.
fn members(table: &BookieTable) -> Vec<Member> {
    table
        .iter()
        .map(|b| Member {
            id: b.id as BookieId,
            role: MemberRole::Bookie,
            name: String::new(),
            incarnation: b.incarnation,
            pending_incarnation: None,
            endpoint: b.endpoint.clone(),
            zone: b.zone.clone(),
            state: b.state,
            limbo_count: b.limbo_count,
            session: b.live.then_some(SessionId(1)),
            lanes: Vec::new(),
            free_bytes: b.free_bytes,
            restarting: b.restarting,
        })
        .collect()
}

impl From<Rejection> for Stop {
    fn from(r: Rejection) -> Self {
        match r {
            // Only these mean "not owner" (1.8).
            Rejection::EpochMismatch { .. } | Rejection::SessionExpired => Self::Drop(r.to_string()),
            r => Self::Retry(r.to_string()),
        }
    }
}

impl From<MetaError> for Stop {
    fn from(e: MetaError) -> Self {
        match e {
            MetaError::SessionExpired => Self::Drop(e.to_string()),
            e => Self::Retry(e.to_string()),
        }
    }
}
