//! A bookie's boot, step two: the quorum learns the pending incarnation and says how the bookie may serve (R15, R16).

use tidemill_types::{
    ClusterId, RequestId, SessionId,
    meta::{BookieSpec, Command, Reply, Request},
};

use crate::{MetaClient, MetaError, OpenError};

/// The quorum's word to a booting bookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookieBoot {
    /// To be written into the cookies.
    pub cluster: ClusterId,
    /// Boot into limbo: fence first, deny nothing (R15).
    pub limbo: bool,
    /// The uuid was declared lost: before it serves, the bookie marks fenced every ledger that it holds and that is not
    /// OPEN, and reads (R27) before the first plain add of this boot to any ledger (1.6).
    pub was_lost: bool,
}

impl MetaClient {
    /// Announces a bookie's boot. Idempotent for one incarnation: after [`MetaError::OutcomeUnknown`] call it again.
    ///
    /// # Errors
    /// [`OpenError::Rejected`] for another cluster or a retired uuid; [`OpenError::Meta`] without an answer.
    pub async fn bookie_boot(&self, spec: BookieSpec) -> Result<BookieBoot, OpenError> {
        let request = Request {
            session: SessionId::NONE,
            request: RequestId(spec.incarnation.0),
            command: Command::BookieBoot(spec),
        };
        match self.propose_request(&request).await? {
            Ok(Reply::BookieBoot { cluster, limbo, was_lost }) => {
                self.inner.learn_cluster(cluster)?;
                Ok(BookieBoot { cluster, limbo, was_lost })
            }
            Ok(other) => {
                Err(MetaError::Malformed { why: format!("unexpected reply to BookieBoot: {other:?}") }.into())
            }
            Err(rejection) => Err(OpenError::Rejected(rejection)),
        }
    }
}
