//! What a finished batch says in its header.

use tidemill_types::Offset;

use crate::header::FRAME_BYTES;
use crate::{Attributes, BatchError, Compression, HEADER_BYTES, ProducerFields};

/// Records of a batch never exceed what its length field can say.
pub(super) const MAX_RECORDS_BYTES: usize = i32::MAX as usize - (HEADER_BYTES - FRAME_BYTES);

/// Everything that a batch says besides its records.
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    /// How to compress the records.
    pub compression: Compression,
    /// Identity and sequence of an idempotent producer.
    pub producer: Option<ProducerFields>,
    /// Whether the batch is part of a transaction; needs a producer.
    pub transactional: bool,
    /// Offset of the first record. A producer leaves 0, the broker assigns it.
    pub base_offset: Offset,
    /// Epoch of the partition's owner. A producer leaves -1.
    pub leader_epoch: i32,
    /// Time of the append, ms since 1970: replaces the timestamps of all records when they are read.
    pub append_time: Option<i64>,
    /// A marker of a broker, see [`crate::control`]; [`crate::check()`] refuses it from a producer.
    pub control: bool,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            compression: Compression::None,
            producer: None,
            transactional: false,
            base_offset: Offset(0),
            leader_epoch: -1,
            append_time: None,
            control: false,
        }
    }
}

impl BatchOptions {
    pub(super) fn attributes(&self) -> Attributes {
        let flag = |on, bit| if on { bit } else { 0 };
        Attributes(
            u16::from(self.compression.id())
                | flag(self.append_time.is_some(), Attributes::APPEND_TIME)
                | flag(self.transactional, Attributes::TRANSACTIONAL)
                | flag(self.control, Attributes::CONTROL),
        )
    }

    pub(super) fn check(&self) -> Result<(), BatchError> {
        let refuse = |field, found, allowed| Err(BatchError::Producer { field, found, allowed });
        match self.producer {
            None if self.transactional => refuse("producer id", -1, "from 0 in a transaction"),
            Some(p) if p.id < 0 => refuse("producer id", p.id, "from 0"),
            Some(p) if p.epoch < 0 => refuse("producer epoch", p.epoch.into(), "from 0"),
            Some(p) if p.base_sequence < 0 && !self.control => {
                refuse("base sequence", p.base_sequence.into(), "from 0")
            }
            _ => Ok(()),
        }
    }
}
