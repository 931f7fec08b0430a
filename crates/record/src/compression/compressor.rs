//! Compressing with state that is kept between batches.

use super::{Compression, gzip, lz4, snappy, zstd};
use crate::BatchError;

/// The codecs' working memory, made at the first use and kept.
#[derive(Default)]
pub(crate) struct Compressor {
    snappy: snappy::Encoder,
    zstd: zstd::Encoder,
}

impl Compressor {
    /// Appends the compressed form of `records` to `out`.
    pub(crate) fn compress(
        &mut self,
        how: Compression,
        records: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), BatchError> {
        match how {
            Compression::None => {
                out.extend_from_slice(records);
                Ok(())
            }
            Compression::Gzip => gzip::compress(records, out),
            Compression::Snappy => self.snappy.compress(records, out),
            Compression::Lz4 => lz4::compress(records, out),
            Compression::Zstd => self.zstd.compress(records, out),
        }
    }
}
