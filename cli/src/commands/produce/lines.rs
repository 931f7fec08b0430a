//! The input in blocks of whole lines, read by a thread of its own so that a silent terminal blocks nobody.

use std::io::{self, Read};

use tidemill_types::ErrorCode;
use tokio::sync::mpsc;

use crate::error::CliError;

/// Longest line, bytes without its end; the topic's own limit is usually lower and checked by the producer. It bounds
/// what is held of a line whose end has not come.
pub(super) const MAX_LINE_BYTES: usize = tidemill_runtime::defaults::MAX_ENTRY_BYTES;
/// Bytes asked for in one read.
const READ_BYTES: usize = 64 << 10;
/// Blocks that wait for the sender.
const BLOCKS: usize = 8;

/// Why no more comes.
#[derive(Debug)]
pub(super) enum InputError {
    /// The line after the last whole one is longer than the limit.
    LongLine,
    /// The input failed.
    Read(io::Error),
}

/// Whole lines; the last one of the input may lack its end.
pub(super) type Block = Result<Vec<u8>, InputError>;

/// Starts the thread; it ends with the input, with the process, or when nobody receives.
pub(super) fn start(input: Box<dyn Read + Send>) -> Result<mpsc::Receiver<Block>, CliError> {
    let (tx, rx) = mpsc::channel(BLOCKS);
    std::thread::Builder::new()
        .name("tidemill-input".to_owned())
        .spawn(move || read(input, MAX_LINE_BYTES, |block| tx.blocking_send(block).is_ok()))
        .map_err(|e| CliError::new("read the input", e.to_string(), ErrorCode::Internal))?;
    Ok(rx)
}

/// Reads to the end; `give` says whether more is wanted.
fn read(mut input: impl Read, max_line: usize, mut give: impl FnMut(Block) -> bool) {
    let mut held = Vec::new();
    loop {
        let start = held.len();
        held.resize(start + READ_BYTES, 0);
        let n = match input.read(&mut held[start..]) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                held.truncate(start);
                continue;
            }
            Err(e) => {
                give(Err(InputError::Read(e)));
                return;
            }
        };
        held.truncate(start + n);
        if n == 0 {
            break;
        }
        // Only the new bytes can have a line's end.
        if let Some(end) = held[start..].iter().rposition(|b| *b == b'\n') {
            let rest = held.split_off(start + end + 1);
            if !give(Ok(std::mem::replace(&mut held, rest))) {
                return;
            }
        }
        if held.len() > max_line {
            give(Err(InputError::LongLine));
            return;
        }
    }
    if !held.is_empty() {
        give(Ok(held));
    }
}

/// The lines of a block without their ends.
pub(super) fn split(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block.strip_suffix(b"\n").unwrap_or(block).split(|b| *b == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its pieces one by one.
    struct Pieces(Vec<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buf[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    fn lines(pieces: Vec<&'static [u8]>, max: usize) -> (Vec<Vec<u8>>, bool) {
        let (mut all, mut ok) = (Vec::new(), true);
        read(Pieces(pieces), max, |block| {
            match block {
                Ok(b) => all.extend(split(&b).map(<[u8]>::to_vec)),
                Err(_) => ok = false,
            }
            true
        });
        (all, ok)
    }

    #[test]
    fn lines_over_pieces() {
        let (all, ok) = lines(vec![b"a\nb", b"c", b"\n\nd\xff"], 10);
        assert!(ok);
        assert_eq!(all, [b"a".to_vec(), b"bc".to_vec(), b"".to_vec(), b"d\xff".to_vec()]);
        assert_eq!(lines(vec![], 10), (vec![], true));
        assert_eq!(lines(vec![b"\n"], 10).0, [b"".to_vec()]);
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        assert_eq!(lines(vec![b"ok\n12345", b"6"], 5), (vec![b"ok".to_vec()], false));
    }

    #[test]
    fn a_large_input_keeps_all_bytes() {
        let text: Vec<u8> = (0..200_000u32).flat_map(|i| format!("{i}\n").into_bytes()).collect();
        let mut seen = 0u32;
        read(&text[..], 100, |block| {
            for line in split(&block.unwrap()) {
                assert_eq!(line, seen.to_string().as_bytes());
                seen += 1;
            }
            true
        });
        assert_eq!(seen, 200_000);
    }
}
