//! Between the records of coordinators and batches.

use tidemill_group::log::{self, Key, Record};
use tidemill_partition_log::StoredBatch;
use tidemill_record::{Batch, BatchBuilder, BatchHeader, Compression, Limits};

use crate::limits;

const LIMITS: Limits = Limits { batch: limits::MAX_PRODUCE_BYTES, ..Limits::DEFAULT };

/// One batch of all records. Of several records of one key the last one is enough, at its place.
pub(super) fn batch(records: &[Record], now_ms: i64) -> Result<Batch, String> {
    let mut last: std::collections::BTreeMap<&Key, usize> = std::collections::BTreeMap::new();
    for (i, r) in records.iter().enumerate() {
        last.insert(&r.key, i);
    }
    let mut builder = BatchBuilder::new(LIMITS);
    for (i, r) in records.iter().enumerate() {
        if last.get(&r.key) != Some(&i) {
            continue;
        }
        let (key, value) = log::encode(r).map_err(|e| e.to_string())?;
        builder.append(now_ms, Some(&key), value.as_deref(), &[]).map_err(|e| e.to_string())?;
    }
    let bytes = builder.finish(Compression::None, None).map_err(|e| e.to_string())?;
    Ok(Batch { header: BatchHeader::parse(&bytes).map_err(|e| e.to_string())?, bytes })
}

/// The records of a stored batch from `from` on.
pub(super) fn read(stored: &StoredBatch, from: i64) -> Result<Vec<Record>, String> {
    let at = |e: String| format!("batch at offset {}: {e}", stored.base_offset);
    tidemill_record::check_stored(&stored.bytes, &LIMITS).map_err(|e| at(e.to_string()))?;
    let mut out = Vec::new();
    for r in tidemill_record::records(&stored.bytes, &LIMITS).map_err(|e| at(e.to_string()))? {
        let r = r.map_err(|e| at(e.to_string()))?;
        if stored.base_offset.0 + i64::from(r.offset_delta) < from {
            continue;
        }
        let key = r.key.ok_or_else(|| at("a record without a key".into()))?;
        out.push(log::decode(&key, r.value.as_deref()).map_err(|e| at(e.to_string()))?);
    }
    Ok(out)
}
