//! Reading and writing the log's bytes again, for whoever tests that damaged ones are refused and never crash anybody.

use super::{
    format::{self, HEADER_LEN},
    payload::{self, Stored},
};

/// Reads a file of the log as a boot does, as far as it can be understood, and checks that what was read is written alike.
/// Gives the number of its records; 0 also for a file whose header is refused.
///
/// # Errors
/// A record that is written in other bytes than it was read from.
pub fn log_file(data: &[u8]) -> Result<usize, String> {
    let node = data.get(16..24).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    let Ok(first) = format::parse_header(data, node) else { return Ok(0) };
    let mut again = format::header(node, first).to_vec();
    let (mut at, mut records) = (HEADER_LEN, 0);
    while let Ok(Some(record)) = format::parse(data, at) {
        let bytes = data.get(record.payload.clone()).unwrap_or_default();
        format::encode(&mut again, record.kind, record.index, record.term, record.synced, bytes);
        let stored =
            Stored { kind: record.kind, term: record.term, payload: bytes::Bytes::copy_from_slice(bytes) };
        if let Ok(entry) = payload::load(record.index, &stored) {
            let back = payload::store(entry)?;
            let alike = payload::load(record.index, &back)?;
            if payload::store(alike)?.payload != back.payload {
                return Err(format!("the entry at {at} is not read and written alike"));
            }
        }
        at = record.next;
        records += 1;
    }
    // The padding behind a payload is not read, so it may differ.
    if again.len() != at {
        return Err(format!("{at} bytes were read, {} were written", again.len()));
    }
    Ok(records)
}
