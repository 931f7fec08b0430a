//! Snappy in the framing of the xerial library.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | 0x82 `SNAPPY` 0x00 |
//! | 4 | version 1, big-endian |
//! | 4 | oldest compatible version 1, big-endian |
//! | 4 + n, repeated | length of a raw snappy block, big-endian; the block |
//!
//! Data that does not start with the 8 bytes is one raw snappy block, as other clients write it.

use snap::raw;

use super::Compression::Snappy;
use super::inflate::too_large;
use crate::BatchError;

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const HEADER_BYTES: usize = 16;
const VERSION: u32 = 1;
/// Bytes of one block before compression, as the Java client has it.
const BLOCK_BYTES: usize = 32 << 10;

/// The encoder holds its hash table in itself: boxed, and only where snappy is used.
#[derive(Default)]
pub(super) struct Encoder(Option<Box<raw::Encoder>>);

impl Encoder {
    pub(super) fn compress(&mut self, records: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
        let encoder = self.0.get_or_insert_with(|| Box::new(raw::Encoder::new()));
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&VERSION.to_be_bytes());
        for block in records.chunks(BLOCK_BYTES) {
            let start = out.len();
            out.resize(start + 4 + raw::max_compress_len(block.len()), 0);
            let n = encoder.compress(block, &mut out[start + 4..]).map_err(|e| Snappy.broken(&e))?;
            let length = u32::try_from(n).map_err(|e| Snappy.broken(&e))?;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
            out.truncate(start + 4 + n);
        }
        Ok(())
    }
}

pub(super) fn inflate(data: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::new();
    let mut decoder = raw::Decoder::new();
    if !data.starts_with(&MAGIC) {
        block(&mut decoder, data, &mut out, max)?;
        return Ok(out);
    }
    let mut rest = header(data)?;
    while !rest.is_empty() {
        // Streams may follow each other, each with its own header.
        if rest.starts_with(&MAGIC) {
            rest = header(rest)?;
            continue;
        }
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(|| cut("length", 4, rest.len()))?;
        let length = u32::from_be_bytes(*length) as usize;
        let (body, after) =
            after.split_at_checked(length).ok_or_else(|| cut("block", length, after.len()))?;
        block(&mut decoder, body, &mut out, max)?;
        rest = after;
    }
    Ok(out)
}

/// Skips a header and gives what follows.
fn header(data: &[u8]) -> Result<&[u8], BatchError> {
    let (head, rest) =
        data.split_first_chunk::<HEADER_BYTES>().ok_or_else(|| cut("header", HEADER_BYTES, data.len()))?;
    let [.., a, b, c, d] = *head;
    let compatible = u32::from_be_bytes([a, b, c, d]);
    if compatible > VERSION {
        return Err(Snappy.broken(&format!("framing version {compatible}, allowed is {VERSION}")));
    }
    Ok(rest)
}

fn block(decoder: &mut raw::Decoder, data: &[u8], out: &mut Vec<u8>, max: usize) -> Result<(), BatchError> {
    let size = raw::decompress_len(data).map_err(|e| Snappy.broken(&e))?;
    if size > max - out.len().min(max) {
        return Err(too_large(max));
    }
    // Before memory is taken for what the block claims.
    if size > data.len().saturating_mul(Snappy.max_ratio()) {
        return Err(Snappy.broken(&format!("{} bytes cannot make {size}", data.len())));
    }
    let start = out.len();
    out.resize(start + size, 0);
    decoder.decompress(data, &mut out[start..]).map_err(|e| Snappy.broken(&e))?;
    Ok(())
}

fn cut(what: &str, needed: usize, have: usize) -> BatchError {
    Snappy.broken(&format!("{what} needs {needed} bytes, {have} are there"))
}
