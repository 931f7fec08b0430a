//! Reading records line by line in a thread of their own, with bounded memory.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    ops::Range,
};

use tidemill_client::HeaderRef;
use tidemill_types::ErrorCode;
use tokio::sync::mpsc;

use super::{Lines, ProduceArgs, channel, json};
use crate::error::CliError;

/// Longest line, bytes: the largest batch, with room for its escapes in JSON.
const MAX_LINE: usize = 8 << 20;
/// Bytes of lines handed over at once.
const GROUP: usize = 256 << 10;

/// A record as read.
#[derive(Debug, Default)]
pub(super) struct Line {
    bytes: Vec<u8>,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
    timestamp: Option<i64>,
}

impl Line {
    fn plain(bytes: Vec<u8>, separator: Option<&[u8]>) -> Self {
        let at = separator.and_then(|s| find(&bytes, s).map(|i| (i, i + s.len())));
        let (key, value) = match at {
            Some((end, start)) => (Some(0..end), start..bytes.len()),
            None => (None, 0..bytes.len()),
        };
        Self { key, value: Some(value), bytes, ..Self::default() }
    }

    pub(super) fn new(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: Vec<(String, Option<Vec<u8>>)>,
        timestamp: Option<i64>,
    ) -> Self {
        let mut bytes = Vec::new();
        let mut put = |part: Option<&[u8]>| {
            part.map(|p| {
                let start = bytes.len();
                bytes.extend_from_slice(p);
                start..bytes.len()
            })
        };
        let key = put(key);
        let value = put(value);
        Self { bytes, key, value, headers, timestamp }
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        self.key.clone().map(|r| &self.bytes[r])
    }

    pub(super) fn value(&self) -> Option<&[u8]> {
        self.value.clone().map(|r| &self.bytes[r])
    }

    pub(super) fn headers(&self) -> impl Iterator<Item = HeaderRef<'_>> {
        self.headers.iter().map(|(key, value)| HeaderRef { key, value: value.as_deref() })
    }

    pub(super) fn timestamp(&self) -> Option<i64> {
        self.timestamp
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len().max(1)).position(|w| w == what)
}

/// Where lines come from.
pub(super) struct Source {
    lines: mpsc::Receiver<Result<Lines, CliError>>,
}

impl Source {
    /// Starts reading.
    pub(super) fn open(args: &ProduceArgs) -> Result<Self, CliError> {
        let separator = match args.key_separator.as_deref() {
            Some("") => return Err(CliError::usage("--key-separator", "at least one character is needed")),
            other => other.map(|s| s.as_bytes().to_vec()),
        };
        let (to, lines) = channel();
        let json = args.json;
        let file = match &args.file {
            None => None,
            Some(path) => {
                let open = File::open(path);
                Some(open.map_err(|e| CliError::usage(path.display().to_string(), e.to_string()))?)
            }
        };
        std::thread::spawn(move || match file {
            Some(f) => read(BufReader::with_capacity(GROUP, f), separator.as_deref(), json, &to),
            None => read(BufReader::with_capacity(GROUP, io::stdin()), separator.as_deref(), json, &to),
        });
        Ok(Self { lines })
    }

    /// The next lines; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Lines>, CliError> {
        self.lines.recv().await.transpose()
    }
}

fn read<R: io::Read>(mut from: BufReader<R>, separator: Option<&[u8]>, json: bool, to: &mpsc::Sender<Result<Lines, CliError>>) {
    let mut number = 0u64;
    let mut group = Vec::new();
    let mut size = 0;
    loop {
        let line = next_line(&mut from, number + 1);
        let line = match line {
            Ok(Some(bytes)) => {
                number += 1;
                size += bytes.len() + 32;
                if json { json::parse(&bytes, number) } else { Ok(Line::plain(bytes, separator)) }
            }
            Ok(None) => break,
            Err(e) => Err(e),
        };
        match line {
            Ok(line) => group.push(line),
            Err(e) => {
                // What came before the bad line is written; the receiver may have gone away, then nobody wants it.
                if to.blocking_send(Ok(group)).is_ok() {
                    drop(to.blocking_send(Err(e)));
                }
                return;
            }
        }
        // Handed over when enough is there, or when the input makes one wait.
        if (size >= GROUP || from.buffer().is_empty()) && to.blocking_send(Ok(std::mem::take(&mut group))).is_err() {
            return;
        }
        if group.is_empty() {
            size = 0;
        }
    }
    if !group.is_empty() {
        drop(to.blocking_send(Ok(group)));
    }
}

fn next_line(from: &mut impl BufRead, number: u64) -> Result<Option<Vec<u8>>, CliError> {
    let mut line = Vec::new();
    loop {
        let buf = match from.fill_buf() {
            Ok(b) => b,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(CliError::new("input", e.to_string(), ErrorCode::Internal)),
        };
        if buf.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        let end = buf.iter().position(|b| *b == b'\n');
        let take = end.unwrap_or(buf.len());
        if line.len() + take > MAX_LINE {
            return Err(CliError::new(
                format!("line {number}"),
                format!("longer than {MAX_LINE} bytes"),
                ErrorCode::MessageTooLarge,
            ));
        }
        line.extend_from_slice(&buf[..take]);
        from.consume(take + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<Vec<u8>> {
        let mut from = BufReader::with_capacity(3, text);
        let mut out = Vec::new();
        while let Some(l) = next_line(&mut from, 1).unwrap() {
            out.push(l);
        }
        out
    }

    #[test]
    fn lines_with_and_without_an_end() {
        assert_eq!(all(b"a\n\nbcdefgh\nlast"), [&b"a"[..], b"", b"bcdefgh", b"last"]);
        assert!(all(b"").is_empty());
        assert_eq!(all(b"\xff\xfe\n"), [b"\xff\xfe"]);
    }

    #[test]
    fn keys() {
        let l = Line::plain(b"k::v::w".to_vec(), Some(b"::"));
        assert_eq!((l.key(), l.value()), (Some(&b"k"[..]), Some(&b"v::w"[..])));
        let l = Line::plain(b"plain".to_vec(), Some(b"::"));
        assert_eq!((l.key(), l.value()), (None, Some(&b"plain"[..])));
    }
}
