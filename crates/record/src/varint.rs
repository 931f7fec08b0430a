//! Variable-length numbers: seven bits per byte, least significant first, the eighth says that more follows; signed
//! numbers are zigzag encoded before, so that small negative ones stay short.

/// Bytes that a 64-bit number takes at most.
pub(crate) const MAX_BYTES: usize = 10;

/// The zigzag form: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
#[inline]
pub(crate) fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)).cast_unsigned()
}

/// The number whose zigzag form this is.
#[inline]
pub(crate) fn unzigzag(v: u64) -> i64 {
    (v >> 1).cast_signed() ^ -((v & 1).cast_signed())
}

/// Bytes that `v` takes. A number in the range of an `i32` takes the same bytes as a 32-bit field and as a 64-bit one.
#[inline]
pub(crate) fn size(v: i64) -> usize {
    let bits = u64::BITS - (zigzag(v) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Writes `v` at `at` and gives the position behind it. The caller has left room.
#[inline]
pub(crate) fn put(buf: &mut [u8], mut at: usize, v: i64) -> usize {
    let mut rest = zigzag(v);
    while rest >= 0x80 {
        buf[at] = (rest & 0x7f) as u8 | 0x80;
        at += 1;
        rest >>= 7;
    }
    buf[at] = (rest & 0x7f) as u8;
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_bytes() {
        for shift in 0..64 {
            for v in
                [1_i64 << shift, (1_i64 << shift).wrapping_sub(1), (1_i64 << shift).wrapping_neg(), i64::MIN]
            {
                let mut buf = [0; MAX_BYTES];
                assert_eq!(put(&mut buf, 0, v), size(v), "{v}");
                assert_eq!(unzigzag(zigzag(v)), v);
            }
        }
    }

    #[test]
    fn known_bytes() {
        let bytes = |v| {
            let mut buf = [0; MAX_BYTES];
            let n = put(&mut buf, 0, v);
            buf[..n].to_vec()
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(-1), [1]);
        assert_eq!(bytes(63), [0x7e]);
        assert_eq!(bytes(-64), [0x7f]);
        assert_eq!(bytes(64), [0x80, 0x01]);
        assert_eq!(bytes(i32::MAX.into()), [0xfe, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(bytes(i64::MIN), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }
}
