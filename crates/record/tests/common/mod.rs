//! Reading the vectors in `testdata/`.

#![allow(dead_code, reason = "each test file uses a part")]

use bytes::Bytes;
use serde_json::Value;
use tidemill_record::{BatchHeader, Record, TimestampType};

/// The entries of a file in `testdata/`.
pub(crate) fn load(file: &str) -> Vec<Value> {
    let path = format!("{}/testdata/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let vectors: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!vectors.is_empty());
    vectors
}

pub(crate) fn name(vector: &Value) -> &str {
    vector["name"].as_str().unwrap()
}

pub(crate) fn hex(v: &Value) -> Bytes {
    let s = v.as_str().unwrap();
    assert!(s.len().is_multiple_of(2));
    (0..s.len()).step_by(2).map(|i| u8::from_str_radix(&s[i..i + 2], 16).unwrap()).collect()
}

/// Compares a header with what the other implementation read.
pub(crate) fn assert_header(name: &str, h: &BatchHeader, expected: &Value) {
    let number = |field: &str, found: i64| {
        assert_eq!(found, expected[field].as_i64().unwrap(), "{name}: {field}");
    };
    number("base_offset", h.base_offset.0);
    number("batch_length", h.batch_length.into());
    number("leader_epoch", h.leader_epoch.into());
    number("crc", h.crc.into());
    number("last_offset", h.last_offset().0);
    number("next_offset", h.next_offset().0);
    if h.delete_horizon().is_none() {
        number("base_timestamp", h.base_timestamp);
    }
    number("max_timestamp", h.max_timestamp);
    number("producer_id", h.producer_id);
    number("producer_epoch", h.producer_epoch.into());
    number("base_sequence", h.base_sequence.into());
    number("count", h.count.into());
    if let Some(producer) = h.producer() {
        number("last_sequence", producer.last_sequence(h.last_offset_delta).into());
    }
    assert_eq!(h.attributes.compression().unwrap().name(), expected["compression"], "{name}");
    assert_eq!(h.attributes.timestamp_type() == TimestampType::Append, expected["append_time"], "{name}");
    assert_eq!(h.attributes.is_transactional(), expected["transactional"], "{name}");
    assert_eq!(h.attributes.is_control(), expected["control"], "{name}");
    assert_eq!(h.delete_horizon(), expected["delete_horizon"].as_i64(), "{name}");
}

/// Compares records with what the other implementation read.
pub(crate) fn assert_records(name: &str, h: &BatchHeader, records: &[Record], expected: &Value) {
    let expected = expected.as_array().unwrap();
    assert_eq!(records.len(), expected.len(), "{name}");
    for (record, e) in records.iter().zip(expected) {
        let offset = h.base_offset.0 + i64::from(record.offset_delta);
        assert_eq!(offset, e["offset"].as_i64().unwrap(), "{name}");
        assert_eq!(record.timestamp, e["timestamp"].as_i64().unwrap(), "{name} at {offset}");
        assert_field(name, record.key.as_ref(), &e["key"]);
        assert_field(name, record.value.as_ref(), &e["value"]);
        let headers = e["headers"].as_array().unwrap();
        assert_eq!(record.headers.len(), headers.len(), "{name} at {offset}");
        for (header, e) in record.headers.iter().zip(headers) {
            assert_field(name, Some(&header.key), &e[0]);
            assert_field(name, header.value.as_ref(), &e[1]);
        }
    }
}

fn assert_field(name: &str, found: Option<&Bytes>, expected: &Value) {
    match (found, expected) {
        (None, Value::Null) => {}
        (Some(found), Value::String(_)) => assert_eq!(found, &hex(expected), "{name}"),
        (Some(found), Value::Object(long)) => {
            assert_eq!(found.len() as u64, long["bytes"].as_u64().unwrap(), "{name}");
            assert_eq!(u64::from(crc_fast::crc32_iscsi(found)), long["crc32c"].as_u64().unwrap(), "{name}");
        }
        _ => panic!("{name}: found {found:?}, expected {expected}"),
    }
}
