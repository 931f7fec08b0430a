//! Records in convenient form, to and from batches.

use tidemill_proto::v1;
use tidemill_record::{Batch, BatchBuilder, BatchError, BatchHeader, Compression, HeaderRef, Limits, Record};

use crate::{
    fault::{Fault, shown},
    limits,
};

/// One batch of these records. A timestamp of 0 becomes `now_ms`.
///
/// # Errors
/// `INVALID_ARGUMENT`, `INVALID_BATCH` or `MESSAGE_TOO_LARGE` with the field.
pub(crate) fn encode(
    records: &[v1::Record],
    compression: i32,
    now_ms: i64,
    max_batch: usize,
) -> Result<Batch, Fault> {
    let compression = compression_of(compression)?;
    if records.len() > limits::MAX_RECORDS {
        return Err(Fault::invalid(
            "records",
            records.len(),
            &format!("1 to {} records", limits::MAX_RECORDS),
        ));
    }
    let mut builder = BatchBuilder::new(Limits { batch: max_batch, ..Limits::DEFAULT });
    for (i, r) in records.iter().enumerate() {
        let at = |e: BatchError| refused(&format!("records[{i}]"), &e, max_batch);
        if r.headers.len() > limits::MAX_HEADERS {
            let allowed = format!("at most {}", limits::MAX_HEADERS);
            return Err(Fault::invalid(&format!("records[{i}].headers"), r.headers.len(), &allowed));
        }
        if r.timestamp_ms < 0 {
            let allowed = "0 for the server's time, or ms since 1970";
            return Err(Fault::invalid(&format!("records[{i}].timestamp_ms"), r.timestamp_ms, allowed));
        }
        let headers: Vec<HeaderRef<'_>> =
            r.headers.iter().map(|h| HeaderRef { key: &h.key, value: h.value.as_deref() }).collect();
        let timestamp = if r.timestamp_ms == 0 { now_ms } else { r.timestamp_ms };
        builder.append(timestamp, r.key.as_deref(), r.value.as_deref(), &headers).map_err(at)?;
    }
    let refuse = |e: BatchError| refused("records", &e, max_batch);
    let bytes = builder.finish(compression, None).map_err(refuse)?;
    Ok(Batch { header: BatchHeader::parse(&bytes).map_err(refuse)?, bytes })
}

fn refused(field: &str, e: &BatchError, max_batch: usize) -> Fault {
    Fault::field(e.error_code(), field, &e.to_string(), &format!("a batch of at most {max_batch} bytes"))
        .with("batch_error", e.code())
}

fn compression_of(wire: i32) -> Result<Compression, Fault> {
    u8::try_from(wire).ok().and_then(|id| Compression::from_id(id).ok()).ok_or_else(|| {
        Fault::invalid("compression", shown(&wire.to_string()), "0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd")
    })
}

/// A record as it is fetched.
pub(crate) fn decode(r: Record, offset: i64) -> v1::Record {
    v1::Record {
        key: r.key,
        value: r.value,
        headers: r
            .headers
            .into_iter()
            .map(|h| v1::Header { key: h.key_str().into_owned(), value: h.value })
            .collect(),
        timestamp_ms: r.timestamp,
        offset,
    }
}

#[cfg(test)]
mod tests {
    use tidemill_record::{check, records};
    use tidemill_types::ErrorCode;

    use super::*;

    fn record(key: Option<&'static str>, value: &'static str) -> v1::Record {
        v1::Record {
            key: key.map(Into::into),
            value: Some(value.into()),
            headers: vec![v1::Header { key: "h".into(), value: None }],
            timestamp_ms: 0,
            offset: 99,
        }
    }

    #[test]
    fn records_survive_the_batch() {
        let given = [record(Some("k"), "v"), record(None, "")];
        for compression in 0..5 {
            let batch = encode(&given, compression, 1_234, 1 << 20).unwrap();
            check(&batch.bytes, &Limits::DEFAULT).unwrap();
            let back: Vec<_> =
                records(&batch.bytes, &Limits::DEFAULT).unwrap().map(|r| decode(r.unwrap(), 99)).collect();
            let want = given.clone().map(|r| v1::Record { timestamp_ms: 1_234, ..r });
            assert_eq!(back, want);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let big = v1::Record { value: Some(vec![7; 3_000].into()), ..record(None, "") };
        let e = encode(&[big], 0, 1, 2_048).unwrap_err();
        assert_eq!(e.code(), ErrorCode::MessageTooLarge);
        assert!(e.to_proto().message.contains("2048"), "{e:?}");
        assert_eq!(
            encode(&[record(None, "")], 9, 1, 1 << 20).unwrap_err().code(),
            ErrorCode::InvalidArgument
        );
        let old = v1::Record { timestamp_ms: -5, ..record(None, "") };
        assert!(
            encode(&[old], 0, 1, 1 << 20).unwrap_err().to_proto().message.contains("records[0].timestamp_ms")
        );
    }
}
