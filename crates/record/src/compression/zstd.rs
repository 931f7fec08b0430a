//! Zstandard.

use zstd::bulk;
use zstd::stream::read::Decoder;

use super::Compression::Zstd;
use super::inflate::{first_capacity, too_large};
use crate::BatchError;

/// The library's and the Java client's default.
const LEVEL: i32 = 3;
/// Window of a frame without content size: 2^27 bytes. It is the most that the highest level of the reference
/// implementation uses, and what its decoder accepts by default.
const MAX_WINDOW_LOG: u32 = 27;

/// A compression context is megabytes large: made once.
#[derive(Default)]
pub(super) struct Encoder(Option<bulk::Compressor<'static>>);

impl Encoder {
    pub(super) fn compress(&mut self, records: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
        let encoder = match &mut self.0 {
            Some(encoder) => encoder,
            none => none.insert(bulk::Compressor::new(LEVEL).map_err(|e| Zstd.broken(&e))?),
        };
        let start = out.len();
        out.resize(start + zstd::zstd_safe::compress_bound(records.len()), 0);
        let written = encoder.compress_to_buffer(records, &mut out[start..]).map_err(|e| Zstd.broken(&e));
        out.truncate(start + *written.as_ref().unwrap_or(&0));
        written.map(|_| ())
    }
}

pub(super) fn inflate(data: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    match bulk::Decompressor::upper_bound(data) {
        // The frames say their sizes: one call, and no window beside the output.
        Some(size) if size > max => Err(too_large(max)),
        Some(size) => {
            let mut out = Vec::with_capacity(size);
            let mut decoder = bulk::Decompressor::new().map_err(|e| Zstd.broken(&e))?;
            decoder.decompress_to_buffer(data, &mut out).map_err(|e| Zstd.broken(&e))?;
            Ok(out)
        }
        // A streaming producer did not know the size.
        None => stream(data, max),
    }
}

fn stream(data: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    use std::io::BufReader;

    let mut out = Vec::with_capacity(first_capacity(data.len(), max));
    let mut decoder = Decoder::with_buffer(data).map_err(|e| Zstd.broken(&e))?;
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(|e| Zstd.broken(&e))?;
    super::inflate::drain(Zstd, &mut BufReader::with_capacity(128 << 10, decoder), &mut out, max)?;
    Ok(out)
}
