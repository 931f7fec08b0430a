//! A record as a JSON object, in the form that `consume -o json` prints.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, de::IgnoredAny};

use super::parse::Parsed;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object<'a> {
    #[serde(borrow)]
    key: Option<Field<'a>>,
    #[serde(borrow)]
    value: Option<Field<'a>>,
    #[serde(borrow)]
    headers: Option<Headers<'a>>,
    timestamp: Option<i64>,
    partition: Option<u32>,
    /// What a reader adds and a writer cannot choose.
    #[serde(rename = "topic")]
    _topic: Option<IgnoredAny>,
    #[serde(rename = "offset")]
    _offset: Option<IgnoredAny>,
    #[serde(rename = "appendTime")]
    _append_time: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, null or {\"base64\": \"...\"}")]
enum Field<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Bytes(#[serde(borrow)] Coded<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Coded<'a> {
    #[serde(borrow)]
    base64: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected headers as an object or as an array of {\"key\", \"value\"}")]
enum Headers<'a> {
    Map(#[serde(borrow)] BTreeMap<String, Option<Field<'a>>>),
    List(#[serde(borrow)] Vec<OneHeader<'a>>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneHeader<'a> {
    key: String,
    #[serde(borrow)]
    value: Option<Field<'a>>,
}

impl<'a> Field<'a> {
    fn decode(self) -> Result<Cow<'a, [u8]>, String> {
        match self {
            Self::Text(Cow::Borrowed(text)) => Ok(Cow::Borrowed(text.as_bytes())),
            Self::Text(Cow::Owned(text)) => Ok(Cow::Owned(text.into_bytes())),
            Self::Bytes(coded) => {
                STANDARD.decode(coded.base64.as_bytes()).map(Cow::Owned).map_err(|e| format!("base64: {e}"))
            }
        }
    }
}

/// Reads an object.
pub(super) fn parse(line: &[u8]) -> Result<Parsed<'_>, String> {
    let object: Object<'_> = serde_json::from_slice(line).map_err(|e| reason(&e))?;
    let own = |(key, value): (String, Option<Field<'_>>)| {
        Ok::<_, String>((key, value.map(Field::decode).transpose()?.map(Cow::into_owned)))
    };
    let headers = match object.headers {
        None => Vec::new(),
        Some(Headers::Map(map)) => map.into_iter().map(own).collect::<Result<_, _>>()?,
        Some(Headers::List(list)) => {
            list.into_iter().map(|h| own((h.key, h.value))).collect::<Result<_, _>>()?
        }
    };
    Ok(Parsed {
        key: object.key.map(Field::decode).transpose()?,
        value: object.value.map(Field::decode).transpose()?,
        headers,
        timestamp: object.timestamp,
        partition: object.partition,
    })
}

/// The parser counts lines within the line; only its column says something.
fn reason(e: &serde_json::Error) -> String {
    let text = e.to_string();
    let text = text.split(" at line ").next().unwrap_or_default().to_owned();
    if e.column() > 0 { format!("{text} at column {}", e.column()) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields() {
        let line = br#"{"key":"k","value":{"base64":"AP8="},"headers":[{"key":"a","value":"1"},{"key":"a","value":null}],
            "timestamp":5,"partition":2,"topic":"x","offset":9,"appendTime":7}"#;
        let p = parse(line).unwrap();
        assert_eq!(p.key.as_deref(), Some(&b"k"[..]));
        assert_eq!(p.value.as_deref(), Some(&b"\x00\xff"[..]));
        assert_eq!(p.headers, [("a".into(), Some(b"1".to_vec())), ("a".into(), None)]);
        assert_eq!((p.timestamp, p.partition), (Some(5), Some(2)));
    }

    #[test]
    fn short_forms() {
        let p = parse(br#"{"value":"a\nb","headers":{"h":"v"}}"#).unwrap();
        assert_eq!((p.key, p.value.as_deref()), (None, Some(&b"a\nb"[..])));
        assert_eq!(p.headers, [("h".into(), Some(b"v".to_vec()))]);
        assert_eq!(parse(br#"{"value":null}"#).unwrap(), Parsed::default());
    }

    #[test]
    fn what_is_refused() {
        for (line, why) in [
            (&b""[..], "EOF"),
            (b"{\"value\":1}", "expected a string, null or"),
            (b"{\"valeu\":\"x\"}", "unknown field `valeu`"),
            (b"{\"value\":{\"base64\":\"?\"}}", "base64"),
            (b"{\"headers\":3}", "expected headers"),
            (b"{\"partition\":-1}", "invalid value"),
            (b"{\"value\":\"\xff\"}", "unicode"),
            (b"[]x", "invalid length"),
        ] {
            let e = parse(line).unwrap_err();
            assert!(e.contains(why) && !e.contains("line"), "{}: {e}", String::from_utf8_lossy(line));
        }
    }
}
