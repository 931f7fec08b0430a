//! The partitions of one fetch: what was asked, and what has been found so far.

use std::sync::Arc;

use tidemill_partition_log::{GapKind, PartitionLog, ReadResult};
use tidemill_proto::v1;
use tidemill_types::{Offset, PartitionId};

use super::refused;
use crate::{core::Core, fault::Fault, limits, route::Topic};

/// One partition of a fetch.
pub(super) struct Item {
    pub(super) asked: v1::FetchPartition,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    /// Not read yet, or at its end.
    Reading(Reading),
    /// Refused or failed.
    Failed(Fault),
}

pub(super) struct Reading {
    pub(super) topic: Topic,
    pub(super) id: PartitionId,
    pub(super) log: Arc<PartitionLog>,
    pub(super) found: Option<ReadResult>,
}

impl Item {
    pub(super) fn new(core: &Core, asked: v1::FetchPartition) -> Self {
        let outcome = match open(core, &asked) {
            Ok(reading) => Outcome::Reading(reading),
            Err(fault) => Outcome::Failed(fault),
        };
        Self { asked, outcome }
    }

    /// Bytes that this partition may bring.
    pub(super) fn limit(&self) -> usize {
        let bytes = match self.asked.max_bytes {
            0 => limits::DEFAULT_PARTITION_FETCH_BYTES,
            n => n.min(limits::MAX_FETCH_BYTES),
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    pub(super) fn offset(&self) -> Offset {
        Offset(self.asked.offset)
    }

    /// Whether nothing was found yet and data may still come.
    pub(super) fn is_waiting(&self) -> bool {
        match &self.outcome {
            Outcome::Reading(r) => r.found.as_ref().is_none_or(|f| f.batches.is_empty() && f.gap.is_none()),
            Outcome::Failed(_) => false,
        }
    }

    /// Takes what a read brought.
    pub(super) fn take(&mut self, core: &Core, read: Result<ReadResult, tidemill_partition_log::FetchError>) {
        let Outcome::Reading(r) = &mut self.outcome else { return };
        match read {
            Ok(found) => r.found = Some(found),
            Err(e) => self.outcome = Outcome::Failed(refused(core, &r.topic, r.id, &e)),
        }
    }

    /// Its part of the answer, with batches.
    pub(super) fn answer(self) -> v1::FetchedPartition {
        let mut out = v1::FetchedPartition {
            next_offset: self.asked.offset,
            topic: self.asked.topic,
            partition: self.asked.partition,
            ..v1::FetchedPartition::default()
        };
        match self.outcome {
            Outcome::Failed(fault) => {
                let error = fault.to_proto();
                out.epoch = error.epoch;
                (out.log_start, out.high_watermark) = (error.log_start, error.log_end);
                out.error = Some(error);
            }
            Outcome::Reading(r) => {
                out.epoch = r.log.epoch().0;
                match r.found {
                    // Others used the bytes up: nothing is known but where it stands.
                    None => {
                        out.high_watermark = r.log.high_watermark().0;
                        out.log_start = r.log.log_start().0;
                    }
                    Some(found) => fill(&mut out, found),
                }
            }
        }
        out
    }
}

fn fill(out: &mut v1::FetchedPartition, found: ReadResult) {
    out.high_watermark = found.high_watermark.0;
    out.log_start = found.log_start.0;
    out.next_offset = found.next_offset.0;
    out.gap = found.gap.map(|g| v1::Gap {
        kind: match g.kind {
            GapKind::Trimmed => v1::gap::Kind::Trimmed,
            GapKind::Compacted => v1::gap::Kind::Compacted,
            GapKind::DataLoss => v1::gap::Kind::DataLoss,
        }
        .into(),
        from: g.from.0,
        to: g.to.0,
    });
    out.batches = found
        .batches
        .into_iter()
        .map(|b| v1::FetchedBatch {
            base_offset: b.base_offset.0,
            append_time_ms: b.append_time_ms,
            batch: b.bytes,
        })
        .collect();
}

fn open(core: &Core, asked: &v1::FetchPartition) -> Result<Reading, Fault> {
    let topic = core.topic(&asked.topic)?;
    let id = topic.partition(asked.partition)?;
    if asked.offset < 0 {
        return Err(Fault::invalid(
            "offset",
            asked.offset,
            "0 or above; ListOffsets tells the first and the last",
        ));
    }
    if asked.max_bytes > limits::MAX_FETCH_BYTES {
        return Err(Fault::invalid(
            "max_bytes",
            asked.max_bytes,
            &format!("0 to {}", limits::MAX_FETCH_BYTES),
        ));
    }
    let log = core.log(&topic, id, asked.epoch)?;
    Ok(Reading { topic, id, log, found: None })
}
