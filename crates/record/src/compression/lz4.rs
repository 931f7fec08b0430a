//! The LZ4 frame format.

use std::io::{Read, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::Compression::Lz4;
use super::inflate::{drain, first_capacity};
use crate::BatchError;

/// Independent blocks of 64 KiB without checksums of their own, as the Java client writes them: its decoder refuses
/// dependent blocks, and the batch has a CRC.
pub(super) fn compress(records: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder.write_all(records).map_err(|e| Lz4.broken(&e))?;
    encoder.finish().map(|_| ()).map_err(|e| Lz4.broken(&e))
}

/// Stands behind the data. The decoder takes the end of the input for the end of the frame; a frame without its end mark
/// shows by having read from here.
const BEHIND: [u8; 4] = [0; 4];

pub(super) fn inflate(data: &[u8], max: usize) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::with_capacity(first_capacity(data.len(), max));
    let mut decoder = FrameDecoder::new(data.chain(&BEHIND[..]));
    drain(Lz4, &mut decoder, &mut out, max)?;
    // The decoder stops at the end mark of the first frame.
    let (rest, behind) = decoder.into_inner().into_inner();
    if !rest.is_empty() {
        return Err(BatchError::Trailing { field: "lz4 frame", bytes: rest.len() as u64 });
    }
    if behind.len() < BEHIND.len() {
        return Err(Lz4.broken("the frame has no end"));
    }
    Ok(out)
}
