//! One per process: connections to bookies, health, and the factory of writers and readers.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use tidemill_types::{ClusterId, EntryId, LedgerId, LedgerRecord};
use tokio_util::sync::DropGuard;

use super::{
    LedgerReader, LedgerWriter, Recovered, explicit_lac, judge, recover, shared::Shared, writer::WriterShared,
};
use crate::{
    LedgerMeta, RecoverError,
    core::{
        FenceAnswer, Unknown,
        lac::{LacRead, LacUnknown},
    },
    transport::{GrpcTransport, Transport},
};

/// Recoveries that run at once.
const RECOVERIES: usize = 256;

/// Times and limits; the defaults are the product's.
#[derive(Clone, Debug)]
pub struct LedgerConfig {
    /// The cluster: every stream opens with it (R26).
    pub cluster: ClusterId,
    /// How long one add or request may stay without an answer.
    pub add_timeout: Duration,
    /// Away longer than this starts an ensemble change (R28).
    pub ensemble_change_delay: Duration,
    /// The same after an announced restart.
    pub restart_delay: Duration,
    /// Unacknowledged bytes per bookie.
    pub unacked_cap: u64,
    /// Ensemble changes of one ledger before a roll is wanted instead.
    pub max_ensemble_changes: u32,
    /// Least wait before a read is sent to a second replica as well; else the 95th percentile of what first answers took.
    pub speculative_read: Duration,
    /// Longest recovery of one ledger.
    pub recovery_timeout: Duration,
    /// A LAC that no entry carries is told to the bookies when it has not moved for so long (1.7).
    pub explicit_lac_delay: Duration,
}

impl LedgerConfig {
    /// The defaults for a cluster.
    #[must_use]
    pub fn new(cluster: ClusterId) -> Self {
        Self {
            cluster,
            add_timeout: Duration::from_secs(2),
            ensemble_change_delay: Duration::from_secs(5),
            restart_delay: Duration::from_mins(1),
            unacked_cap: 64 << 20,
            max_ensemble_changes: 8,
            speculative_read: Duration::from_millis(10),
            recovery_timeout: Duration::from_secs(30),
            explicit_lac_delay: Duration::from_millis(200),
        }
    }
}

/// The client of the replicated ledgers.
#[derive(Clone)]
pub struct LedgerClient {
    shared: Arc<Shared>,
    _stop: Arc<DropGuard>,
}

impl LedgerClient {
    /// A client over gRPC. Starts its tasks on the current tokio runtime; dropping the last clone ends them, and with them
    /// every writer's connections.
    #[must_use]
    pub fn new(meta: Arc<dyn LedgerMeta>, config: LedgerConfig) -> Self {
        Self::with_transport(meta, Arc::new(GrpcTransport::new()), config)
    }

    /// A client over another transport.
    #[must_use]
    pub fn with_transport(
        meta: Arc<dyn LedgerMeta>,
        transport: Arc<dyn Transport>,
        config: LedgerConfig,
    ) -> Self {
        let shared = Shared::new(config, meta, transport);
        let stop = shared.stop.clone();
        tokio::spawn(judge::run(Arc::downgrade(&shared), stop.clone()));
        tokio::spawn(explicit_lac::run(Arc::downgrade(&shared), stop.clone()));
        Self { shared, _stop: Arc::new(stop.drop_guard()) }
    }

    /// The writer of a ledger that this process created and nobody has written to: `record` is the answer to its
    /// `CreateLedger`. One writer per ledger in its life: never call this for a ledger that was written before.
    #[must_use]
    pub fn open_writer(&self, record: LedgerRecord) -> LedgerWriter {
        LedgerWriter { shared: WriterShared::open(&self.shared, record) }
    }

    /// Fences the ledger and finds its end (1.6). Does not store it: the caller sends `TakeOver` or `Close`.
    ///
    /// # Errors
    /// [`RecoverError`]: nothing was decided, try again.
    pub async fn recover(&self, ledger: LedgerId) -> Result<Recovered, RecoverError> {
        recover::recover(&self.shared, ledger, None).await
    }

    /// As [`LedgerClient::recover`], for a ledger whose record was just read: one read less in a take-over of many.
    ///
    /// # Errors
    /// As [`LedgerClient::recover`].
    pub async fn recover_known(&self, record: LedgerRecord) -> Result<Recovered, RecoverError> {
        recover::recover(&self.shared, record.id, Some(record)).await
    }

    /// Recovers many ledgers; fences go to each bookie in few calls. Answers in the order of `ledgers`.
    pub async fn recover_many(&self, ledgers: &[LedgerId]) -> Vec<Result<Recovered, RecoverError>> {
        futures::stream::iter(ledgers.to_vec())
            .map(|l| recover::recover(&self.shared, l, None))
            .buffered(RECOVERIES)
            .collect()
            .await
    }

    /// A reader of a CLOSED ledger (up to its last entry); of another one it reads nothing.
    #[must_use]
    pub fn reader(&self, record: LedgerRecord) -> LedgerReader {
        let last = record.last_entry.unwrap_or(EntryId::NONE);
        LedgerReader::new(self.shared.clone(), record, last)
    }

    /// A reader of an own open ledger, or of a recovered one whose close is not stored, up to `last`.
    #[must_use]
    pub fn reader_up_to(&self, record: LedgerRecord, last: EntryId) -> LedgerReader {
        LedgerReader::new(self.shared.clone(), record, last)
    }

    /// A lower bound of an open ledger's LAC without fencing it (1.7): the highest that QC bookies of the last fragment told.
    ///
    /// # Errors
    /// Fewer than QC answered.
    pub async fn read_lac(&self, record: &LedgerRecord) -> Result<EntryId, LacUnknown> {
        let Some(f) = record.last_fragment() else { return Err(LacUnknown) };
        let mut core = LacRead::new(f.ensemble.len(), record.ack_quorum);
        let timeout = self.shared.config.add_timeout;
        let mut calls: futures::stream::FuturesUnordered<_> = f
            .ensemble
            .iter()
            .enumerate()
            .map(|(n, b)| {
                let call = self
                    .shared
                    .target(*b)
                    .map(|t| self.shared.transport.read_lac(t, record.id, None, Duration::ZERO));
                async move {
                    let answer = match call {
                        None => FenceAnswer::Unknown(Unknown::Closed),
                        Some(c) => tokio::time::timeout(timeout, c)
                            .await
                            .unwrap_or(FenceAnswer::Unknown(Unknown::TimedOut)),
                    };
                    (n, answer)
                }
            })
            .collect();
        while let Some((n, answer)) = calls.next().await {
            if let Some(lac) = core.answer(n, answer)? {
                return Ok(lac);
            }
        }
        Err(LacUnknown)
    }
}
