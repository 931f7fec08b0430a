//! What a bookie asks the metadata quorum about ledgers.

use futures::future::BoxFuture;
use tidemill_meta_client::{MetaClient, MetaError};
use tidemill_types::{
    BookieId, ClusterId, LedgerId, LedgerRecord,
    meta::{Answer, Query},
};

use crate::collector::Standing;

/// The quorum gave no answer. This is never a verdict about a ledger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata quorum does not answer: {0}")]
pub(crate) struct NoAnswer(pub(crate) String);

/// Linearizable reads of ledger records.
///
/// # Contract
/// - Every answer MUST be true as of a moment after the call (ReadIndex, never a lease or a cache): first touches (R27) and
///   collection (R20) rest on it.
/// - `Ok(None)` MUST mean that the quorum answered that the record does not exist.
/// - A page MUST hold every ledger that names the bookie between `after` and its last element; fewer than `limit` elements
///   mean that the end was reached.
pub(crate) trait Records: Send + Sync + 'static {
    /// A ledger's record.
    fn ledger(&self, ledger: LedgerId) -> BoxFuture<'_, Result<Option<LedgerRecord>, NoAnswer>>;

    /// A page of the ledgers that name the bookie, in order of id.
    fn ledgers_of(
        &self,
        bookie: BookieId,
        after: Option<LedgerId>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<LedgerRecord>, NoAnswer>>;

    /// The quorum's cluster, and the next ledger id that would be handed out: every ledger that was ever made lies below.
    fn cluster(&self) -> BoxFuture<'_, Result<(Option<ClusterId>, LedgerId), NoAnswer>>;

    /// The bookie in the table of members; `None`: it is not there.
    fn standing(&self, bookie: BookieId) -> BoxFuture<'_, Result<Option<Standing>, NoAnswer>>;
}

/// Elements of a page.
pub(crate) const PAGE: u32 = 1_000;

/// All ledgers that name the bookie, page by page; `each` may have been called when a later page fails.
///
/// # Errors
/// A page failed, or the pages are not in order: a listing is whole or it is nothing (R20).
pub(crate) async fn all_ledgers_of(
    records: &dyn Records,
    bookie: BookieId,
    mut each: impl FnMut(LedgerRecord) + Send,
) -> Result<(), NoAnswer> {
    let mut after = None;
    loop {
        let page = records.ledgers_of(bookie, after, PAGE).await?;
        let whole = page.len() < PAGE as usize;
        for record in page {
            if after.is_some_and(|a| record.id <= a) {
                return Err(NoAnswer(format!("ledger {} is out of order in a listing", record.id)));
            }
            after = Some(record.id);
            each(record);
        }
        if whole {
            return Ok(());
        }
    }
}

impl From<MetaError> for NoAnswer {
    fn from(e: MetaError) -> Self {
        Self(e.to_string())
    }
}

impl Records for MetaClient {
    fn ledger(&self, ledger: LedgerId) -> BoxFuture<'_, Result<Option<LedgerRecord>, NoAnswer>> {
        Box::pin(async move { Ok(MetaClient::ledger(self, ledger).await?) })
    }

    fn ledgers_of(
        &self,
        bookie: BookieId,
        after: Option<LedgerId>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<LedgerRecord>, NoAnswer>> {
        Box::pin(async move {
            match self.read(&Query::LedgersOf { bookie, after, limit }).await? {
                (Answer::Ledgers(page), _) => Ok(page),
                (other, _) => Err(unexpected(&other)),
            }
        })
    }

    fn cluster(&self) -> BoxFuture<'_, Result<(Option<ClusterId>, LedgerId), NoAnswer>> {
        Box::pin(async move {
            match self.read(&Query::Cluster).await? {
                (Answer::Cluster(info), _) => Ok((info.cluster, info.next_ledger)),
                (other, _) => Err(unexpected(&other)),
            }
        })
    }

    fn standing(&self, bookie: BookieId) -> BoxFuture<'_, Result<Option<Standing>, NoAnswer>> {
        Box::pin(async move {
            match self.read(&Query::Members).await? {
                (Answer::Members(all), _) => Ok(all.into_iter().find(|m| m.id == bookie).map(|m| Standing {
                    incarnation: m.incarnation,
                    session: m.session,
                    state: m.state,
                })),
                (other, _) => Err(unexpected(&other)),
            }
        })
    }
}

fn unexpected(answer: &Answer) -> NoAnswer {
    NoAnswer(format!("an answer of another kind: {answer:?}"))
}
