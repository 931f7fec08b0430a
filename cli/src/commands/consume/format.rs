//! `-o`: how a record is printed.

use tidemill_client::{ConsumedBatch, ConsumedRecord};

use super::json;

/// What is printed per record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The value and a line's end.
    Value,
    /// A JSON object and a line's end.
    Json,
    /// These pieces, with a line's end unless they have one.
    Pieces(Vec<Piece>),
}

/// A piece of a format.
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

/// Reads `value`, `json` or a format.
pub(super) fn parse(text: &str) -> Result<Format, String> {
    match text {
        "value" => return Ok(Format::Value),
        "json" => return Ok(Format::Json),
        _ if !text.contains('%') => {
            return Err(
                "value, json or a format with at least one of %t %p %o %k %v %h %T expected".to_owned()
            );
        }
        _ => {}
    }
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let piece = match c {
            '\\' => {
                literal.push(match rest.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some('0') => '\0',
                    Some('\\') => '\\',
                    other => return Err(unknown('\\', other)),
                });
                continue;
            }
            '%' => match rest.next() {
                Some('%') => {
                    literal.push('%');
                    continue;
                }
                Some('t') => Piece::Topic,
                Some('p') => Piece::Partition,
                Some('o') => Piece::Offset,
                Some('k') => Piece::Key,
                Some('v') => Piece::Value,
                Some('h') => Piece::Headers,
                Some('T') => Piece::Timestamp,
                other => return Err(unknown('%', other)),
            },
            c => {
                literal.push(c);
                continue;
            }
        };
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal).into_bytes()));
        }
        pieces.push(piece);
    }
    if !literal.ends_with('\n') {
        literal.push('\n');
    }
    pieces.push(Piece::Text(literal.into_bytes()));
    Ok(Format::Pieces(pieces))
}

fn unknown(mark: char, next: Option<char>) -> String {
    match next {
        Some(c) => format!("{mark}{c} is unknown; {mark}{mark} stands for {mark}"),
        None => format!("a single {mark} at the end; {mark}{mark} stands for {mark}"),
    }
}

impl Format {
    /// Appends a record.
    pub(super) fn write(&self, out: &mut Vec<u8>, batch: &ConsumedBatch, record: &ConsumedRecord) {
        match self {
            Self::Value => {
                out.extend_from_slice(record.value.as_deref().unwrap_or_default());
                out.push(b'\n');
            }
            Self::Json => {
                json::write(out, batch, record);
                out.push(b'\n');
            }
            Self::Pieces(pieces) => pieces.iter().for_each(|p| p.write(out, batch, record)),
        }
    }
}

impl Piece {
    fn write(&self, out: &mut Vec<u8>, batch: &ConsumedBatch, record: &ConsumedRecord) {
        let number = |out: &mut Vec<u8>, n: i64| out.extend_from_slice(n.to_string().as_bytes());
        match self {
            Self::Text(text) => out.extend_from_slice(text),
            Self::Topic => out.extend_from_slice(batch.source.topic.as_bytes()),
            Self::Partition => number(out, i64::from(batch.source.partition)),
            Self::Offset => number(out, record.offset),
            Self::Key => out.extend_from_slice(record.key.as_deref().unwrap_or_default()),
            Self::Value => out.extend_from_slice(record.value.as_deref().unwrap_or_default()),
            Self::Timestamp => number(out, record.timestamp),
            Self::Headers => {
                for (i, h) in record.headers.iter().enumerate() {
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tidemill_client::{Header, TopicPartition};

    use super::*;

    fn print(format: &str, value: Option<&'static [u8]>) -> String {
        let header = |k: &'static str, v: Option<&'static [u8]>| Header {
            key: Bytes::from_static(k.as_bytes()),
            value: v.map(Bytes::from_static),
        };
        let record = ConsumedRecord {
            offset: 7,
            timestamp: 1_000,
            key: Some(Bytes::from_static(b"k")),
            value: value.map(Bytes::from_static),
            headers: vec![header("a", Some(b"1")), header("b", None)],
        };
        let batch = ConsumedBatch {
            source: TopicPartition { topic: "orders".into(), partition: 3 },
            append_time: 2_000,
            high_watermark: 8,
            records: Vec::new(),
        };
        let mut out = Vec::new();
        parse(format).unwrap().write(&mut out, &batch, &record);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn formats() {
        assert_eq!(print("value", Some(b"v")), "v\n");
        assert_eq!(print("value", None), "\n");
        assert_eq!(print("%t/%p@%o %k=%v [%h] %T", Some(b"v")), "orders/3@7 k=v [a=1,b=] 1000\n");
        assert_eq!(print("%v\\n", Some(b"v")), "v\n");
        assert_eq!(print("100%% %k\\t%v\\\\", Some(b"v")), "100% k\tv\\\n");
    }

    #[test]
    fn json_is_one_line() {
        assert_eq!(
            print("json", Some(b"a\n\"b\"")),
            "{\"topic\":\"orders\",\"partition\":3,\"offset\":7,\"timestamp\":1000,\"appendTime\":2000,\"key\":\"k\",\
             \"value\":\"a\\n\\\"b\\\"\",\"headers\":[{\"key\":\"a\",\"value\":\"1\"},{\"key\":\"b\",\"value\":null}]}\n"
        );
        assert!(print("json", Some(b"\x00\xff")).contains("\"value\":{\"base64\":\"AP8=\"}"));
        assert!(print("json", None).contains("\"value\":null"));
    }

    #[test]
    fn bad_formats() {
        for bad in ["", "table", "%x", "%v%", "%v\\", "%v\\q"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
