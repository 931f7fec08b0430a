//! One pass: keys of the dirty ledgers, then everything that stays, then the swap.

use std::sync::{Arc, atomic::Ordering};

use tidemill_ledger::LedgerReader;
use tidemill_record::{BatchHeader, Limits};
use tidemill_types::{Cleanup, EntryId, LedgerRecord, Offset};

use super::{
    PartitionLog,
    catch_up::{batches_of, envelope_of, fetch_error},
    compact::{Failed, Job, later},
    compact_output::Output,
};
use crate::{
    StoredBatch,
    compaction::{Bounds, Filter, KeyMap, Packer, PackerConfig, Put, filter::is_untouched},
    config::{roll_bytes, roll_ms},
    envelope::Kind,
};

/// Bytes of one read, and of what is worked on without a pause.
const READ_BYTES: usize = 256 << 10;
/// An entry of the output is full at so many bytes: a reader that wants one record reads one entry.
const ENTRY_BYTES: usize = 256 << 10;
/// A stored batch passed the limit of its topic when it was written; that limit may be lower now.
const LIMITS: Limits = Limits { batch: 64 << 20, ..Limits::DEFAULT };

/// How far the keys of a pass reach.
struct Reach {
    keys: KeyMap,
    /// So many of the input's ledgers are taken.
    ledgers: usize,
    /// Keys of dirty records below it are known.
    upto: Offset,
}

/// Reads the batches of a closed ledger in order.
struct Batches {
    reader: LedgerReader,
    next: EntryId,
    /// Append time of the last entry that was read, ms.
    time_ms: i64,
}

impl PartitionLog {
    pub(super) async fn pass(self: &Arc<Self>, mut job: Job) -> Result<(), Failed> {
        let started = self.ctx.clock.boottime();
        self.note_progress(0);
        let reach = self.reach(&job).await?;
        if let Some((_, base)) = job.input.get(reach.ledgers) {
            job.end = *base;
            job.input.truncate(reach.ledgers);
        }
        let (ledgers, bytes) = (job.input.len(), job.bytes());
        let mut output = Output::new(self);
        let upto = reach.upto;
        let written = self.rewrite(&job, reach, &mut output).await;
        let (new, horizon_ms) = match written {
            Ok(horizon) => (output.take_closed(), horizon),
            Err(e) => {
                self.keep_orphans(output.abandon());
                return Err(e);
            }
        };
        self.swap(job.input.iter().map(|(l, _)| l.id).collect(), new.clone()).await?;
        if let Some(c) = self.core.lock().compaction.as_mut() {
            c.horizon_ms = horizon_ms;
            c.status.clean_to = upto;
        }
        self.ctx.compaction.passes.fetch_add(1, Ordering::Relaxed);
        let took_ms = self.ctx.clock.boottime().saturating_sub(started).as_millis();
        tracing::info!(partition = %self.id, from = ledgers, to = new.len(), bytes, took_ms = %took_ms, "compacted");
        Ok(())
    }

    /// The keys of the dirty ledgers, as far as they fit: whole ledgers, or a part of the first one.
    async fn reach(&self, job: &Job) -> Result<Reach, Failed> {
        let dirty = job.input.get(job.clean..).unwrap_or_default();
        let expected = dirty.iter().map(|(l, _)| l.records.unwrap_or(0)).sum();
        let mut keys = KeyMap::new(self.ctx.config.compaction_keys_bytes, expected);
        for (i, (ledger, base)) in dirty.iter().enumerate() {
            let mut batches = Batches::of(self, ledger);
            while let Some(read) = batches.next(self).await? {
                for b in read {
                    if self.note_keys(&b, &mut keys)? {
                        continue;
                    }
                    let whole = i > 0;
                    let upto = if whole { *base } else { b.base_offset };
                    return Ok(Reach { keys, ledgers: job.clean + i + usize::from(!whole), upto });
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(Reach { keys, ledgers: job.input.len(), upto: job.end })
    }

    /// Notes the keys of a batch; false when they do not fit any more.
    fn note_keys(&self, b: &StoredBatch, keys: &mut KeyMap) -> Result<bool, Failed> {
        let header = BatchHeader::parse(&b.bytes).map_err(|e| later("stored batch", e))?;
        if is_untouched(&header) {
            return Ok(true);
        }
        let count = usize::try_from(header.count).unwrap_or(0);
        if !keys.has_room(count) {
            return Ok(false);
        }
        keys.admit(count);
        for record in tidemill_record::records(&b.bytes, &LIMITS).map_err(|e| later("stored batch", e))? {
            let record = record.map_err(|e| later("stored batch", e))?;
            if let Some(key) = &record.key
                && keys.put(key, Offset(b.base_offset.0 + i64::from(record.offset_delta))) == Put::Full
            {
                return Err(Failed::Later("the table of keys is smaller than it said".to_owned()));
            }
        }
        Ok(true)
    }

    /// Writes what stays; the earliest time from which a tombstone in it may go, ms.
    async fn rewrite(
        self: &Arc<Self>,
        job: &Job,
        reach: Reach,
        output: &mut Output<'_>,
    ) -> Result<Option<i64>, Failed> {
        let base = job.input.first().map_or(job.end, |(_, base)| *base);
        let bounds = self.bounds(job, reach.upto);
        let mut filter = Filter::new(reach.keys, bounds, LIMITS);
        let mut packer = Packer::new(self.packer_config(), base);
        let mut packed = Vec::new();
        let (mut done, all) = (0, job.bytes().max(1));
        let mut in_rest = false;
        let mut horizon: Option<i64> = None;
        let mut time_ms = 0;
        for (ledger, _) in &job.input {
            let mut batches = Batches::of(self, ledger);
            while let Some(read) = batches.next(self).await? {
                for b in &read {
                    if !in_rest && b.base_offset >= reach.upto {
                        in_rest = true;
                        packer.begin_rest(reach.upto, &mut packed);
                    }
                    let left = filter.filter(b).map_err(|e| later("stored batch", e))?;
                    self.ctx.compaction.kept_records.fetch_add(left.kept.into(), Ordering::Relaxed);
                    self.ctx.compaction.dropped_records.fetch_add(left.dropped.into(), Ordering::Relaxed);
                    horizon = horizon.into_iter().chain(left.horizon_ms).min();
                    if let Some(b) = left.batch {
                        let header = BatchHeader::parse(&b.bytes).map_err(|e| later("batch", e))?;
                        packer.add(&b, &header, &mut packed);
                    }
                }
                done += read.iter().map(|b| b.bytes.len() as u64).sum::<u64>();
                self.note_progress(done * 100 / all);
                output.take(&mut packed).await?;
            }
            time_ms = time_ms.max(batches.time_ms);
        }
        // The producers as of the end of what is replaced: the newest `state` in it may be one interval old.
        let records: Vec<LedgerRecord> = job.input.iter().map(|(l, _)| l.clone()).collect();
        let producers = self.producers_at_end(&records).await?;
        let state = producers.map(|p| p.snapshot(job.end)).unwrap_or_default();
        packer.finish(job.end, time_ms, state, &mut packed);
        output.take(&mut packed).await?;
        Ok(horizon)
    }

    fn bounds(&self, job: &Job, upto: Offset) -> Bounds {
        let core = self.core.lock();
        Bounds {
            log_start: job.log_start,
            upto,
            // What has surely passed; until that is known no tombstone goes.
            now_ms: self.ctx.meta.confirmed_time_ms().unwrap_or(i64::MIN),
            horizon_ms: self.horizon_ms(&core.config.cleanup),
            expired_ms: self.rule(&core).expired_at,
        }
    }

    /// Delete horizon of a tombstone that is compacted now for the first time, ms.
    pub(super) fn horizon_ms(&self, cleanup: &Cleanup) -> i64 {
        let delete_horizon = self.ctx.config.delete_horizon.as_millis();
        let delete_horizon = i64::try_from(cleanup.delete_horizon_ms.map_or(delete_horizon, u128::from));
        let own = self.ctx.clock.realtime_ms();
        let now = self.ctx.meta.quorum_time_ms().unwrap_or(own).max(own);
        now.saturating_add(delete_horizon.unwrap_or(i64::MAX))
    }

    fn packer_config(&self) -> PackerConfig {
        let core = self.core.lock();
        let config = &self.ctx.config;
        let ms = |d: std::time::Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let deletes = core.config.cleanup.policy.deletes();
        // Retention counts in whole ledgers: they are not larger than those that it would find otherwise.
        let (bytes, time) = if deletes {
            let time = roll_ms(&core.config, ms(config.roll_age), ms(config.retention));
            (roll_bytes(&core.config, config.compacted_ledger_bytes), i64::try_from(time).unwrap_or(i64::MAX))
        } else {
            (config.compacted_ledger_bytes, i64::MAX)
        };
        PackerConfig {
            entry_bytes: ENTRY_BYTES,
            ledger_bytes: bytes.min(config.compacted_ledger_bytes),
            ledger_ms: time,
        }
    }
}

impl Job {
    fn bytes(&self) -> u64 {
        self.input.iter().map(|(l, _)| l.length.unwrap_or(0)).sum()
    }
}

impl Batches {
    fn of(log: &PartitionLog, ledger: &LedgerRecord) -> Self {
        Self { reader: log.ctx.ledgers.reader(ledger.clone()), next: EntryId::FIRST, time_ms: 0 }
    }

    /// The batches of the next entries, at the pace of all compactions; `None` behind the last.
    async fn next(&mut self, log: &PartitionLog) -> Result<Option<Vec<StoredBatch>>, Failed> {
        let last = self.reader.last_entry();
        if self.next > last {
            return Ok(None);
        }
        log.check_serving()?;
        let entries = self.reader.read_range(self.next, last, READ_BYTES).await;
        let entries = entries.map_err(|e| later("read", fetch_error(&e, Offset(0))))?;
        let mut out = Vec::new();
        let mut bytes = 0;
        for entry in entries {
            self.next = entry.header().entry.next();
            bytes += entry.bytes().len();
            let envelope = envelope_of(&entry.envelope()).map_err(|e| later("envelope", e))?;
            self.time_ms = self.time_ms.max(envelope.append_time_ms);
            if envelope.kind == Kind::Data {
                batches_of(&envelope, &entry, Offset(0), &mut out).map_err(|e| later("stored batch", e))?;
            }
        }
        log.ctx.compaction.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        log.ctx.compaction_pace.wait(bytes).await;
        Ok(Some(out))
    }
}
