//! Offsets by position and by time, and the log start.

use std::sync::Arc;

use tidemill_record::{Limits, records};
use tidemill_types::{
    EntryId, LedgerId, Offset,
    meta::{Command, Reply},
};

use super::{
    PartitionLog, Stop,
    catch_up::{batches_of, envelope_of, fetch_error, search},
};
use crate::{FetchError, ListedOffset, OffsetSpec, StoredBatch, envelope::Kind};

impl PartitionLog {
    pub(super) async fn find_offset(
        self: &Arc<Self>,
        spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, FetchError> {
        let log_start = self.check_readable()?;
        match spec {
            OffsetSpec::Earliest => Ok(Some(ListedOffset { offset: log_start, timestamp_ms: -1 })),
            OffsetSpec::Latest => {
                self.prove_ownership().await?;
                Ok(Some(ListedOffset { offset: self.shared.high_watermark(), timestamp_ms: -1 }))
            }
            OffsetSpec::Timestamp(ms) => {
                // Before the look: what is acknowledged by then is searched.
                self.prove_ownership().await?;
                if self.shared.acked().max_timestamp_ms < ms {
                    return Ok(None);
                }
                self.find_time(ms, log_start).await
            }
        }
    }

    /// The first record at or above `log_start` with a timestamp of at least `ms`. The largest timestamp so far, which every
    /// envelope has, never decreases: whole ledgers and then entries are found by halving.
    async fn find_time(&self, ms: i64, log_start: Offset) -> Result<Option<ListedOffset>, FetchError> {
        let chain: Vec<LedgerId> = self.core.lock().chain.iter().map(|e| e.ledger).collect();
        let (mut low, mut high) = (0, chain.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let (reader, _) = self.reader(chain[middle]).await?;
            // What came before the ledger stands in its first entry. An empty one says nothing and ends nothing.
            let before = if reader.last_entry() < EntryId::FIRST {
                i64::MAX
            } else {
                let head = reader.read_head(EntryId::FIRST).await.map_err(|e| fetch_error(&e, log_start))?;
                envelope_of(&head.envelope)?.max_timestamp_so_far_ms
            };
            if before < ms {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for ledger in &chain[low.saturating_sub(1)..] {
            let (reader, index) = self.reader(*ledger).await?;
            if reader.last_entry() < EntryId::FIRST {
                continue;
            }
            let bounds = index.map_or((EntryId::FIRST, None), |i| i.around_time(ms));
            let first =
                search(&reader, bounds, |e| e.max_timestamp_so_far_ms >= ms && e.next_offset() > log_start)
                    .await
                    .map_err(|e| e.into_fetch(log_start))?;
            // From the first candidate on: only when records below the log start hold the maximum are there more to look at.
            let Some(mut at) = first else { continue };
            while at <= reader.last_entry() {
                let heads = reader
                    .read_heads(at, reader.last_entry())
                    .await
                    .map_err(|e| fetch_error(&e, log_start))?;
                for head in heads {
                    let envelope = envelope_of(&head.envelope)?;
                    at = head.header.entry.next();
                    if envelope.kind != Kind::Data || envelope.max_timestamp_ms < ms {
                        continue;
                    }
                    let entry = reader
                        .read(head.header.entry)
                        .await
                        .map_err(|e| fetch_error(&e, envelope.base_offset))?;
                    let mut batches = Vec::new();
                    batches_of(&envelope, &entry, log_start, &mut batches)?;
                    if let Some(found) = batches.iter().find_map(|b| record_at(b, ms, log_start)) {
                        return Ok(Some(found));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The newest complete snapshot stays (2.1 rule 6): how far the log start may go with the ledger that has it in the chain.
    pub(super) async fn state_bound(&self) -> Result<Offset, FetchError> {
        if self.core.lock().has_durable_state(self.shared.lac()) {
            return Ok(Offset(i64::MAX));
        }
        let view = self.ctx.meta.partition(self.id).await;
        let Some(view) = view.map_err(|e| FetchError::Unavailable(e.to_string()))? else {
            return Err(FetchError::NotOwner);
        };
        // Only a ledger with records surely has one: its `data` entries stand behind it.
        let newest = view.ledgers.iter().rposition(|l| l.records.is_some_and(|n| n > 0));
        let next = newest.and_then(|i| view.partition.chain.get(i + 1));
        Ok(next.map_or(Offset(i64::MAX), |e| Offset(e.base_offset.0 - 1)))
    }

    pub(super) async fn move_log_start(self: &Arc<Self>, to: Offset) -> Result<Offset, FetchError> {
        let log_start = self.check_readable()?;
        let to = to.min(self.shared.high_watermark()).min(self.state_bound().await?);
        if to <= log_start {
            return Ok(log_start);
        }
        let command = Command::AdvanceLogStart { partition: self.id, epoch: self.epoch, to };
        match self.ctx.meta.propose(command).await {
            Ok(Ok(Reply::Partition(p))) => {
                let mut core = self.core.lock();
                core.log_start = core.log_start.max(p.log_start);
                let first = p.chain.first().map(|e| e.ledger);
                // Ids do not rise along a chain that was compacted.
                if let Some(gone) = core.chain.iter().position(|e| Some(e.ledger) == first) {
                    core.chain.drain(..gone);
                }
                Ok(core.log_start)
            }
            Ok(Ok(other)) => Err(FetchError::Unavailable(format!("unexpected reply {other:?}"))),
            Ok(Err(r)) => match Stop::from(r) {
                Stop::Drop(why) => {
                    self.drop_log(&why);
                    Err(FetchError::NotOwner)
                }
                Stop::Retry(why) => Err(FetchError::Unavailable(why)),
            },
            Err(e) => Err(FetchError::Unavailable(e.to_string())),
        }
    }
}

/// The first record of a batch, at or above `from`, with a timestamp of at least `ms`.
fn record_at(b: &StoredBatch, ms: i64, from: Offset) -> Option<ListedOffset> {
    let header = tidemill_record::BatchHeader::parse(&b.bytes).ok()?;
    if header.max_timestamp < ms {
        return None;
    }
    let Ok(opened) = records(&b.bytes, &Limits::DEFAULT) else {
        // A batch that cannot be opened holds it somewhere.
        return Some(ListedOffset { offset: b.base_offset, timestamp_ms: header.max_timestamp });
    };
    for record in opened {
        let Ok(record) = record else { break };
        let offset = Offset(b.base_offset.0 + i64::from(record.offset_delta));
        if record.timestamp >= ms && offset >= from {
            return Some(ListedOffset { offset, timestamp_ms: record.timestamp });
        }
    }
    None
}
