//! Gzip: one member is written, several in a row are read.

use std::io::{BufReader, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::Compression::Gzip;
use super::inflate::{drain, first_capacity};
use crate::BatchError;

/// Level 6: the format's usual trade and the Java client's default.
const LEVEL: flate2::Compression = flate2::Compression::new(6);

pub(super) fn compress(records: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
    let mut encoder = GzEncoder::new(out, LEVEL);
    encoder.write_all(records).and_then(|()| encoder.finish().map(|_| ())).map_err(|e| Gzip.broken(&e))
}

pub(super) fn inflate(data: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::with_capacity(first_capacity(data.len(), max));
    drain(Gzip, &mut BufReader::with_capacity(32 << 10, MultiGzDecoder::new(data)), &mut out, max)?;
    Ok(out)
}
