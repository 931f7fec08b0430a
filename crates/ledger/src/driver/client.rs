//! One per process: connections to bookies, health, and the factory of writers and readers.

use std::{sync::Arc, time::Duration};

use tidemill_types::{ClusterId, EntryId, LedgerId, LedgerRecord};

use crate::{LedgerMeta, LedgerReader, LedgerWriter, RecoverError, Recovered};

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
    /// Least wait before a read is sent to a second replica as well.
    pub speculative_read: Duration,
    /// Longest recovery of one ledger.
    pub recovery_timeout: Duration,
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
        }
    }
}

/// The client of the replicated ledgers.
#[derive(Clone)]
pub struct LedgerClient {
    _meta: Arc<dyn LedgerMeta>,
}

impl LedgerClient {
    /// A client over gRPC. Starts its tasks on the current tokio runtime; dropping the last clone ends them.
    #[must_use]
    pub fn new(meta: Arc<dyn LedgerMeta>, _config: LedgerConfig) -> Self {
        Self { _meta: meta }
    }

    /// The writer of a ledger that this process created and nobody has written to: `record` is the answer to its
    /// `CreateLedger`. One writer per ledger in its life: never call this for a ledger that was written before.
    #[must_use]
    pub fn open_writer(&self, _record: LedgerRecord) -> LedgerWriter {
        todo!()
    }

    /// Fences the ledger and finds its end (1.6). Does not store it: the caller sends `TakeOver` or `Close`.
    ///
    /// # Errors
    /// [`RecoverError`]: nothing was decided, try again.
    pub async fn recover(&self, _ledger: LedgerId) -> Result<Recovered, RecoverError> {
        todo!()
    }

    /// Recovers many ledgers; fences go to each bookie in few calls. Answers in the order of `ledgers`.
    pub async fn recover_many(&self, _ledgers: &[LedgerId]) -> Vec<Result<Recovered, RecoverError>> {
        todo!()
    }

    /// A reader of a CLOSED ledger (up to its last entry).
    #[must_use]
    pub fn reader(&self, _record: LedgerRecord) -> LedgerReader {
        todo!()
    }

    /// A reader of an own open ledger, or of a recovered one whose close is not stored, up to `last`.
    #[must_use]
    pub fn reader_up_to(&self, _record: LedgerRecord, _last: EntryId) -> LedgerReader {
        todo!()
    }
}
