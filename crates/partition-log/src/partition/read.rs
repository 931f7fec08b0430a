//! Reads: the tail cache, else the chain.

use std::sync::Arc;

use tidemill_types::Offset;

use super::{PartitionLog, catch_up::Found};
use crate::{FetchError, Gap, GapKind, LogState, ReadResult, StoredBatch};

/// Reads of one call that meet a ledger which is being removed.
const TRIES: u32 = 3;

impl PartitionLog {
    pub(super) async fn read_from(
        self: &Arc<Self>,
        offset: Offset,
        max_bytes: usize,
    ) -> Result<ReadResult, FetchError> {
        self.check_readable()?;
        let high_watermark = self.shared.high_watermark();
        if offset >= high_watermark {
            // An answer about the end: only an owner may give it (1.7).
            self.prove_ownership().await?;
        }
        let mut tries = 0;
        loop {
            let high_watermark = self.shared.high_watermark();
            let log_start = self.check_readable()?;
            if offset > high_watermark {
                return Err(FetchError::OutOfRange { offset, log_start, high_watermark });
            }
            let from = offset.max(log_start);
            let gap =
                (offset < log_start).then_some(Gap { kind: GapKind::Trimmed, from: offset, to: log_start });
            let answer = |batches: Vec<StoredBatch>, next_offset| ReadResult {
                batches,
                high_watermark,
                log_start,
                next_offset,
                gap,
            };
            if from >= high_watermark {
                return Ok(answer(Vec::new(), from));
            }
            let cached = self.shared.cached(from, max_bytes);
            self.ctx.tail_cache.count(cached.is_some());
            let found = match cached {
                Some(batches) => Ok(Found { batches, nothing_to: None }),
                None => self.catch_up(from, max_bytes).await,
            };
            match found {
                Ok(Found { batches, nothing_to }) => {
                    let first = batches.first().map(|b| b.base_offset).or(nothing_to).unwrap_or(from);
                    if first <= from {
                        let next = batches.last().map_or(from, end_of);
                        return Ok(answer(batches, next));
                    }
                    // One gap in an answer: behind the trimmed offsets the next read tells of the compacted ones.
                    if gap.is_some() {
                        return Ok(answer(Vec::new(), from));
                    }
                    let next = batches.last().map_or(first, end_of);
                    let gap = Some(Gap { kind: GapKind::Compacted, from, to: first });
                    return Ok(ReadResult { gap, ..answer(batches, next) });
                }
                // The chain moved under the read: look again with the chain as it is now.
                Err(FetchError::Trimmed { .. }) if tries < TRIES => {
                    tries += 1;
                    self.refresh_chain().await?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// The log start, when reads below the high watermark may be answered.
    pub(super) fn check_readable(&self) -> Result<Offset, FetchError> {
        let core = self.core.lock();
        match core.state {
            LogState::Closed | LogState::Dropped => Err(FetchError::NotOwner),
            _ if !core.readable => Err(FetchError::NotReady),
            _ => Ok(core.log_start),
        }
    }

    async fn refresh_chain(&self) -> Result<(), FetchError> {
        let view = self.ctx.meta.partition(self.id).await;
        match view.map_err(|e| FetchError::Unavailable(e.to_string()))? {
            Some(view) if view.partition.epoch == self.epoch => {
                self.adopt_chain(&view);
                Ok(())
            }
            _ => {
                self.drop_log("another epoch was seen");
                Err(FetchError::NotOwner)
            }
        }
    }
}

/// Offset behind a stored batch.
pub(super) fn end_of(b: &StoredBatch) -> Offset {
    let count =
        tidemill_record::BatchHeader::parse(&b.bytes).map_or(1, |h| i64::from(h.last_offset_delta) + 1);
    Offset(b.base_offset.0 + count)
}
