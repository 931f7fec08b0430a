//! `--json`: one object per line.

use serde::Deserialize;
use tidemill_types::ErrorCode;

use super::lines::Line;
use crate::error::CliError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    key: Option<String>,
    value: Option<serde_json::Value>,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, Option<String>>,
    timestamp: Option<i64>,
}

/// A record from an object with key, value, headers, timestamp. A value that is no string is written as its JSON text;
/// null or no value is a tombstone.
pub(super) fn parse(bytes: &[u8], number: u64) -> Result<Line, CliError> {
    let o: Object = serde_json::from_slice(bytes).map_err(|e| {
        CliError::new(format!("line {number}"), format!("not a record in JSON: {e}"), ErrorCode::InvalidArgument)
            .help("expected an object with key, value, headers, timestamp; the lines before it were written, this one was not")
    })?;
    let value = match o.value {
        None | Some(serde_json::Value::Null) => None,
        Some(serde_json::Value::String(s)) => Some(s.into_bytes()),
        Some(other) => Some(other.to_string().into_bytes()),
    };
    let headers = o.headers.into_iter().map(|(k, v)| (k, v.map(String::into_bytes))).collect();
    Ok(Line::new(o.key.as_deref().map(str::as_bytes), value.as_deref(), headers, o.timestamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_what_is_none() {
        let l = parse(br#"{"key":"k","value":{"a":1},"headers":{"h":"x"},"timestamp":7}"#, 1).unwrap();
        assert_eq!((l.key(), l.value(), l.timestamp()), (Some(&b"k"[..]), Some(&br#"{"a":1}"#[..]), Some(7)));
        assert_eq!(l.headers().count(), 1);
        assert_eq!(parse(br#"{"key":"k"}"#, 1).unwrap().value(), None);
        let e = parse(br#"{"keys":"k"}"#, 9).unwrap_err().to_string();
        assert!(e.contains("line 9") && e.contains("keys"), "{e}");
    }
}
