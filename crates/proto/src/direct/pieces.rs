//! An encoded message as pieces: small fields together, payloads as they are.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};

/// Payloads below this are copied: a piece of its own costs more.
const COPY_BELOW: usize = 4 << 10;

/// The compressed flag and the length in front of each message.
const PREFIX: usize = 5;

/// What goes to the transport, in order.
#[derive(Debug, Default)]
pub struct Pieces {
    small: BytesMut,
    ready: VecDeque<Bytes>,
    waiting: usize,
}

impl Pieces {
    /// Begins a message of so many encoded bytes (at most 2^32 - 1; more is cut off by the receiver's check).
    pub fn begin(&mut self, len: usize) {
        self.small.reserve(PREFIX);
        self.small.put_u8(0);
        self.small.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Where the fields around the payloads go.
    pub fn fields(&mut self) -> &mut BytesMut {
        &mut self.small
    }

    /// A payload, shared when it is large.
    pub fn payload(&mut self, bytes: &Bytes) {
        if bytes.len() < COPY_BELOW {
            self.small.extend_from_slice(bytes);
        } else {
            self.cut();
            self.waiting += bytes.len();
            self.ready.push_back(bytes.clone());
        }
    }

    fn cut(&mut self) {
        if !self.small.is_empty() {
            self.waiting += self.small.len();
            self.ready.push_back(self.small.split().freeze());
        }
    }

    /// Bytes that were not taken yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting + self.small.len()
    }

    /// The next piece.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() {
            self.cut();
        }
        let piece = self.ready.pop_front()?;
        self.waiting -= piece.len();
        Some(piece)
    }
}
