//! Reading numbers without ever reading past the end, and the frame of the small files.

use std::fmt;

use tidemill_types::entry::crc32c;
use uuid::Uuid;

/// Takes fields off the front of a slice; `None` when it ends.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (a, b) = self.0.split_at_checked(n)?;
        self.0 = b;
        Some(a)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (a, b) = self.0.split_first_chunk::<N>()?;
        self.0 = b;
        Some(*a)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|a| a[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn uuid(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }
}

/// Why bytes of a small file were not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadFrame {
    Short,
    Magic,
    Version(u16),
    Digest,
    Body,
}

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("it is cut off"),
            Self::Magic => f.write_str("it does not start with the expected mark"),
            Self::Version(v) => write!(f, "its version {v} is not known to this program"),
            Self::Digest => f.write_str("its checksum does not match"),
            Self::Body => f.write_str("a field in it is out of range"),
        }
    }
}

const FRAME_HEAD: usize = 12;

/// Wraps a body: magic (4), version (2), zero (2), body length (4), body, CRC-32C of all before (4).
pub(crate) fn frame(magic: [u8; 4], version: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(FRAME_HEAD + body.len() + 4);
    out.extend_from_slice(&magic);
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(body);
    let crc = crc32c(&[&out]);
    out.extend_from_slice(&crc.to_be_bytes());
    out
}

/// The body of a frame.
pub(crate) fn unframe(magic: [u8; 4], version: u16, bytes: &[u8]) -> Result<&[u8], BadFrame> {
    let mut r = Reader(bytes);
    if r.take(4).ok_or(BadFrame::Short)? != magic {
        return Err(BadFrame::Magic);
    }
    let found = r.u16().ok_or(BadFrame::Short)?;
    if found != version {
        return Err(BadFrame::Version(found));
    }
    r.u16().ok_or(BadFrame::Short)?;
    let len = r.u32().ok_or(BadFrame::Short)? as usize;
    let body = r.take(len).ok_or(BadFrame::Short)?;
    let crc = r.u32().ok_or(BadFrame::Short)?;
    if !r.0.is_empty() || crc32c(&[&bytes[..FRAME_HEAD + len]]) != crc {
        return Err(BadFrame::Digest);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_frame_is_found() {
        let good = frame(*b"TEST", 3, b"some body");
        assert_eq!(unframe(*b"TEST", 3, &good), Ok(&b"some body"[..]));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(unframe(*b"TEST", 3, &bad).is_err(), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(unframe(*b"TEST", 3, &good[..cut]).is_err(), "cut {cut}");
        }
    }
}
