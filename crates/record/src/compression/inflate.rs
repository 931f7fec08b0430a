//! Decompressing with a cap on what comes out.

use std::io::{BufRead, ErrorKind};

use super::{Compression, gzip, lz4, snappy, zstd};
use crate::BatchError;

/// Decompresses all of `data`. Memory is taken as output appears, never for what a length field claims beyond `max`
/// bytes; data that makes more is refused.
pub(crate) fn inflate(how: Compression, data: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    match how {
        Compression::None if data.len() > max => Err(too_large(max)),
        Compression::None => Ok(data.to_vec()),
        Compression::Gzip => gzip::inflate(data, max),
        Compression::Snappy => snappy::inflate(data, max),
        Compression::Lz4 => lz4::inflate(data, max),
        Compression::Zstd => zstd::inflate(data, max),
    }
}

pub(super) fn too_large(max: usize) -> BatchError {
    BatchError::Inflated { max: max as u64 }
}

/// First allocation for the output of so many compressed bytes: a usual ratio, not a promise.
pub(super) fn first_capacity(compressed: usize, max: usize) -> usize {
    compressed.saturating_mul(4).min(max)
}

/// Appends everything that `from` gives to `out`, up to `max` bytes in `out`.
pub(super) fn drain(
    how: Compression,
    from: &mut impl BufRead,
    out: &mut Vec<u8>,
    max: usize,
) -> Result<(), BatchError> {
    loop {
        let piece = match from.fill_buf() {
            Ok([]) => return Ok(()),
            Ok(piece) => piece,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(how.broken(&e)),
        };
        if piece.len() > max - out.len().min(max) {
            return Err(too_large(max));
        }
        out.extend_from_slice(piece);
        let n = piece.len();
        from.consume(n);
    }
}
