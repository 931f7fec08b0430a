//! The five compressions. Only the records are compressed, never the header.

mod compressor;
mod gzip;
mod inflate;
mod lz4;
mod snappy;
mod zstd;

pub(crate) use compressor::Compressor;
pub(crate) use inflate::inflate;

use crate::BatchError;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// Gzip (RFC 1952).
    Gzip,
    /// Snappy in the framing of the xerial library, as Java clients write it. Raw snappy is read too.
    Snappy,
    /// The LZ4 frame format.
    Lz4,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Compression {
    /// All of them, in the order of their ids.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The value in the attribute bits.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// The compression with this value in the attribute bits.
    ///
    /// # Errors
    /// [`BatchError::UnknownCompression`] from 5 on.
    pub fn from_id(id: u8) -> Result<Self, BatchError> {
        Self::ALL.get(usize::from(id)).copied().ok_or(BatchError::UnknownCompression { found: id })
    }

    /// The name in configurations and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The compression with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }

    /// Bytes that one compressed byte can become at most, by the format.
    ///
    /// Deflate copies 258 bytes with two bits. A snappy copy makes 64 bytes out of 3. One more length byte of an LZ4
    /// match stands for 255 bytes. A zstd RLE block makes 128 KiB out of 4 bytes.
    pub(crate) fn max_ratio(self) -> usize {
        match self {
            Self::None => 1,
            Self::Gzip => 1_032,
            Self::Snappy => 22,
            Self::Lz4 => 255,
            Self::Zstd => 32 * 1_024,
        }
    }

    /// An error of the codec.
    pub(crate) fn broken(self, reason: &(impl ToString + ?Sized)) -> BatchError {
        BatchError::Compressed { codec: self.name(), reason: reason.to_string() }
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
