//! Bytes that came in several pieces, read as if they were one.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// Payloads below this are copied out of their piece, so that a small one that is kept for long does not keep a large
/// piece with it.
const COPY_BELOW: usize = 16 << 10;

/// A queue of pieces, none of them empty.
#[derive(Debug, Default)]
pub(super) struct Rope {
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl Rope {
    pub(super) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Takes the first `n` bytes off; `n` is at most what there is.
    pub(super) fn split_to(&mut self, n: usize) -> Self {
        let mut head = Self::default();
        while head.len < n {
            let Some(front) = self.pieces.front_mut() else { break };
            let piece = front.split_to(front.len().min(n - head.len));
            if front.is_empty() {
                self.pieces.pop_front();
            }
            self.len -= piece.len();
            head.push(piece);
        }
        head
    }
}

impl Buf for Rope {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |p| p)
    }

    fn advance(&mut self, mut n: usize) {
        while n > 0 {
            let Some(front) = self.pieces.front_mut() else { break };
            let step = front.len().min(n);
            front.advance(step);
            if front.is_empty() {
                self.pieces.pop_front();
            }
            self.len -= step;
            n -= step;
        }
    }

    /// A slice of a piece where it lies in one, else a copy.
    fn copy_to_bytes(&mut self, n: usize) -> Bytes {
        let n = n.min(self.len);
        let Some(front) = self.pieces.front_mut() else { return Bytes::new() };
        if n <= front.len() {
            let small = n < COPY_BELOW && front.len() > n;
            let slice = if small { Bytes::copy_from_slice(&front[..n]) } else { front.slice(..n) };
            self.advance(n);
            return slice;
        }
        let mut whole = BytesMut::with_capacity(n);
        while whole.len() < n {
            let step = self.chunk().len().min(n - whole.len());
            if step == 0 {
                break;
            }
            whole.extend_from_slice(&self.chunk()[..step]);
            self.advance(step);
        }
        whole.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(pieces: &[&[u8]]) -> Rope {
        let mut r = Rope::default();
        pieces.iter().for_each(|p| r.push(Bytes::copy_from_slice(p)));
        r
    }

    #[test]
    fn it_reads_over_the_seams() {
        let mut r = rope(&[b"ab", b"", b"cde", b"f"]);
        assert_eq!(r.remaining(), 6);
        assert_eq!(r.get_u8(), b'a');
        let mut head = r.split_to(3);
        assert_eq!((head.remaining(), r.remaining()), (3, 2));
        assert_eq!(head.copy_to_bytes(3), "bcd");
        assert_eq!(r.copy_to_bytes(2), "ef");
        assert_eq!((r.remaining(), r.chunk().len()), (0, 0));
    }

    #[test]
    fn a_large_payload_is_not_copied_and_a_small_one_does_not_hold_its_piece() {
        let piece = Bytes::from(vec![7; COPY_BELOW * 2]);
        let at = piece.as_ptr();
        let mut r = Rope::default();
        r.push(piece);
        assert_eq!(r.copy_to_bytes(COPY_BELOW).as_ptr(), at);
        let small = r.copy_to_bytes(COPY_BELOW - 1);
        assert_ne!(small.as_ptr(), at.wrapping_add(COPY_BELOW));
        assert_eq!(r.remaining(), 1);
    }
}
