//! Reading from a slice without ever going beyond it.

use std::ops::Range;

use crate::{BatchError, varint};

/// A position in a slice. Every read is bounded by the slice and names its field when it fails.
pub(crate) struct Cursor<'a> {
    buf: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Reads `buf` from `at` on. Positions that come out are positions in `buf`.
    pub(crate) fn new(buf: &'a [u8], at: usize) -> Self {
        Self { buf, at }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.buf.len().saturating_sub(self.at)
    }

    #[inline]
    pub(crate) fn byte(&mut self, field: &'static str) -> Result<u8, BatchError> {
        let Some(&b) = self.buf.get(self.at) else {
            return Err(BatchError::Truncated { field, needed: 1, have: 0 });
        };
        self.at += 1;
        Ok(b)
    }

    /// The next `n` bytes as a range of the slice.
    #[inline]
    pub(crate) fn take(&mut self, field: &'static str, n: usize) -> Result<Range<usize>, BatchError> {
        let have = self.remaining();
        if n > have {
            return Err(BatchError::Truncated { field, needed: n as u64, have: have as u64 });
        }
        let start = self.at;
        self.at += n;
        Ok(start..self.at)
    }

    /// A 32-bit varint: at most 5 bytes, of which the last has 4 bits.
    #[inline]
    pub(crate) fn varint(&mut self, field: &'static str) -> Result<i32, BatchError> {
        let raw = self.unsigned::<5, 32>(field)?;
        // `unsigned` leaves no bit above the 32nd, so the zigzag form fits.
        i32::try_from(varint::unzigzag(raw)).map_err(|_| BatchError::Varint {
            field,
            max_bytes: 5,
            max_bits: 32,
        })
    }

    /// A 64-bit varint: at most 10 bytes, of which the last has 1 bit.
    #[inline]
    pub(crate) fn varlong(&mut self, field: &'static str) -> Result<i64, BatchError> {
        Ok(varint::unzigzag(self.unsigned::<10, 64>(field)?))
    }

    /// The length of a nullable field: `None` for -1.
    #[inline]
    pub(crate) fn nullable_length(&mut self, field: &'static str) -> Result<Option<usize>, BatchError> {
        let found = self.varint(field)?;
        match found {
            -1 => Ok(None),
            0.. => Ok(Some(found.unsigned_abs() as usize)),
            _ => Err(BatchError::Length { field, found: found.into(), min: -1, max: i32::MAX.into() }),
        }
    }

    #[inline]
    fn unsigned<const BYTES: u8, const BITS: u8>(&mut self, field: &'static str) -> Result<u64, BatchError> {
        let first = self.byte(field)?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let mut value = u64::from(first & 0x7f);
        for i in 1..BYTES {
            let b = self.byte(field)?;
            let shift = u32::from(i) * 7;
            let room = u32::from(BITS) - shift;
            if room < 7 && u32::from(b) >> room != 0 {
                break;
            }
            value |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                return Ok(value);
            }
        }
        Err(BatchError::Varint { field, max_bytes: BYTES, max_bits: BITS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_widths_come_back() {
        for shift in 0..64 {
            for v in [1_i64 << shift, (1_i64 << shift).wrapping_neg(), (1_i64 << shift).wrapping_sub(1)] {
                let mut buf = [0; varint::MAX_BYTES];
                let n = varint::put(&mut buf, 0, v);
                assert_eq!(Cursor::new(&buf[..n], 0).varlong("v"), Ok(v));
                match i32::try_from(v) {
                    Ok(small) => assert_eq!(Cursor::new(&buf[..n], 0).varint("v"), Ok(small)),
                    Err(_) => {
                        assert_eq!(Cursor::new(&buf[..n], 0).varint("v").unwrap_err().code(), "BAD_VARINT");
                    }
                }
            }
        }
    }

    #[test]
    fn endless_and_cut_numbers_are_refused() {
        assert_eq!(Cursor::new(&[0xff; 20], 0).varint("v").unwrap_err().code(), "BAD_VARINT");
        assert_eq!(Cursor::new(&[0xff; 20], 0).varlong("v").unwrap_err().code(), "BAD_VARINT");
        assert_eq!(Cursor::new(&[0x80; 20], 0).varint("v").unwrap_err().code(), "BAD_VARINT");
        assert_eq!(Cursor::new(&[0x80, 0x80], 0).varint("v").unwrap_err().code(), "TRUNCATED_BATCH");
        assert_eq!(Cursor::new(&[], 0).varint("v").unwrap_err().code(), "TRUNCATED_BATCH");
    }

    #[test]
    fn a_negative_length_other_than_null_is_refused() {
        assert_eq!(Cursor::new(&[1], 0).nullable_length("l"), Ok(None));
        assert_eq!(Cursor::new(&[3], 0).nullable_length("l").unwrap_err().code(), "BAD_LENGTH");
    }
}
