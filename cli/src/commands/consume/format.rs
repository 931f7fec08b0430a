//! How a record is printed.

use serde_json::json;
use tidemill_client::{ConsumedRecord, TopicPartition};

/// `-o`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The value and a newline.
    Value,
    /// One JSON object per line.
    Json,
    /// A template.
    Template(Vec<Piece>),
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Topic,
    Partition,
    Offset,
    Key,
    Value,
    Headers,
    Timestamp,
}

impl Format {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "value" => Ok(Self::Value),
            "json" => Ok(Self::Json),
            _ if !text.contains('%') => Err(format!("{text:?}: value, json, or a format with % expected")),
            _ => Ok(Self::Template(pieces(text)?)),
        }
    }

    /// Appends the record with its end of line.
    pub(super) fn put(&self, out: &mut Vec<u8>, source: &TopicPartition, r: &ConsumedRecord) {
        match self {
            Self::Value => out.extend_from_slice(r.value.as_deref().unwrap_or_default()),
            Self::Json => out.extend_from_slice(json_of(source, r).to_string().as_bytes()),
            Self::Template(pieces) => {
                for p in pieces {
                    p.put(out, source, r);
                }
            }
        }
        out.push(b'\n');
    }
}

impl Piece {
    fn put(&self, out: &mut Vec<u8>, source: &TopicPartition, r: &ConsumedRecord) {
        match self {
            Self::Text(t) => out.extend_from_slice(t),
            Self::Topic => out.extend_from_slice(source.topic.as_bytes()),
            Self::Partition => out.extend_from_slice(source.partition.to_string().as_bytes()),
            Self::Offset => out.extend_from_slice(r.offset.to_string().as_bytes()),
            Self::Key => out.extend_from_slice(r.key.as_deref().unwrap_or_default()),
            Self::Value => out.extend_from_slice(r.value.as_deref().unwrap_or_default()),
            Self::Timestamp => out.extend_from_slice(r.timestamp.to_string().as_bytes()),
            Self::Headers => {
                for (i, h) in r.headers.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(&h.key);
                    out.push(b'=');
                    out.extend_from_slice(h.value.as_deref().unwrap_or_default());
                }
            }
        }
    }
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut out = Vec::new();
    let mut plain = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let piece = match (c, if c == '%' || c == '\\' { chars.next() } else { None }) {
            ('%', Some('t')) => Piece::Topic,
            ('%', Some('p')) => Piece::Partition,
            ('%', Some('o')) => Piece::Offset,
            ('%', Some('k')) => Piece::Key,
            ('%', Some('v')) => Piece::Value,
            ('%', Some('h')) => Piece::Headers,
            ('%', Some('T')) => Piece::Timestamp,
            ('%', Some('%')) => {
                plain.push(b'%');
                continue;
            }
            ('\\', Some('n')) => {
                plain.push(b'\n');
                continue;
            }
            ('\\', Some('t')) => {
                plain.push(b'\t');
                continue;
            }
            ('\\', Some('\\')) => {
                plain.push(b'\\');
                continue;
            }
            ('%' | '\\', other) => {
                let shown = other.map_or_else(String::new, |o| o.to_string());
                return Err(format!("{c}{shown} is not known: %t %p %o %k %v %h %T %% \\n \\t \\\\"));
            }
            (c, _) => {
                plain.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        if !plain.is_empty() {
            out.push(Piece::Text(std::mem::take(&mut plain)));
        }
        out.push(piece);
    }
    if !plain.is_empty() {
        out.push(Piece::Text(plain));
    }
    Ok(out)
}

fn json_of(source: &TopicPartition, r: &ConsumedRecord) -> serde_json::Value {
    let text = |b: Option<&[u8]>| b.map(|b| String::from_utf8_lossy(b).into_owned());
    let headers: serde_json::Map<String, serde_json::Value> = r
        .headers
        .iter()
        .map(|h| (String::from_utf8_lossy(&h.key).into_owned(), json!(text(h.value.as_deref()))))
        .collect();
    json!({
        "topic": &*source.topic,
        "partition": source.partition,
        "offset": r.offset,
        "timestamp": r.timestamp,
        "key": text(r.key.as_deref()),
        "value": text(r.value.as_deref()),
        "headers": headers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let source = TopicPartition { topic: "t".into(), partition: 3 };
        let r = ConsumedRecord {
            offset: 7,
            timestamp: 9,
            key: Some("k".into()),
            value: Some("v".into()),
            headers: Vec::new(),
        };
        let mut out = Vec::new();
        Format::parse("%t/%p@%o %k=%v %T 100%%\\t").unwrap().put(&mut out, &source, &r);
        assert_eq!(out, b"t/3@7 k=v 9 100%\t\n");
        out.clear();
        Format::Json.put(&mut out, &source, &r);
        let back: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((back["offset"].as_i64(), back["value"].as_str()), (Some(7), Some("v")));
        assert!(Format::parse("%x").is_err() && Format::parse("plain").is_err());
    }
}
