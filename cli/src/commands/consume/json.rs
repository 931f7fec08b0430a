//! A record as a JSON object; `produce --json` takes it back.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer, ser::SerializeMap};
use tidemill_client::{ConsumedBatch, ConsumedRecord};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    topic: &'a str,
    partition: u32,
    offset: i64,
    /// ms since 1970, null for none.
    timestamp: Option<i64>,
    append_time: i64,
    key: Option<Text<'a>>,
    value: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<Header<'a>>,
}

#[derive(Serialize)]
struct Header<'a> {
    key: Cow<'a, str>,
    value: Option<Text<'a>>,
}

/// A string when the bytes are one, else `{"base64": "..."}`.
struct Text<'a>(&'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => s.serialize_str(text),
            Err(_) => {
                let mut map = s.serialize_map(Some(1))?;
                map.serialize_entry("base64", &STANDARD.encode(self.0))?;
                map.end()
            }
        }
    }
}

/// Appends the object, without a line's end.
pub(super) fn write(out: &mut Vec<u8>, batch: &ConsumedBatch, record: &ConsumedRecord) {
    let object = Object {
        topic: &batch.source.topic,
        partition: batch.source.partition,
        offset: record.offset,
        timestamp: (record.timestamp >= 0).then_some(record.timestamp),
        append_time: batch.append_time,
        key: record.key.as_deref().map(Text),
        value: record.value.as_deref().map(Text),
        headers: record
            .headers
            .iter()
            .map(|h| Header { key: String::from_utf8_lossy(&h.key), value: h.value.as_deref().map(Text) })
            .collect(),
    };
    let before = out.len();
    if serde_json::to_writer(&mut *out, &object).is_err() {
        // Strings and numbers into memory cannot fail; half an object must not be printed all the same.
        out.truncate(before);
    }
}
