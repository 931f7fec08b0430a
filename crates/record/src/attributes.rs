//! The attribute bits of a batch.

use crate::{BatchError, Compression};

/// Whose clock the timestamps of a batch are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer's, one per record.
    Create,
    /// The broker's at the append, one per batch: the header's max timestamp is that of every record.
    Append,
}

/// The 16 attribute bits.
///
/// | bit | meaning |
/// | --- | --- |
/// | 0 to 2 | compression |
/// | 3 | 1 = append time |
/// | 4 | 1 = part of a transaction |
/// | 5 | 1 = control batch |
/// | 6 | 1 = the base timestamp is a delete horizon (set by compaction) |
/// | 7 to 15 | unused, 0 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(pub u16);

impl Attributes {
    const COMPRESSION: u16 = 0b111;
    pub(crate) const APPEND_TIME: u16 = 1 << 3;
    pub(crate) const TRANSACTIONAL: u16 = 1 << 4;
    pub(crate) const CONTROL: u16 = 1 << 5;
    pub(crate) const DELETE_HORIZON: u16 = 1 << 6;
    const UNUSED: u16 = !0b111_1111;

    /// How the records are compressed.
    ///
    /// # Errors
    /// [`BatchError::UnknownCompression`] for the values 5 to 7.
    pub fn compression(self) -> Result<Compression, BatchError> {
        Compression::from_id((self.0 & Self::COMPRESSION) as u8)
    }

    /// Whose clock the timestamps are from.
    #[must_use]
    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::APPEND_TIME == 0 { TimestampType::Create } else { TimestampType::Append }
    }

    /// Whether the batch is part of a transaction.
    #[must_use]
    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Whether the batch is a marker and holds no record of a user.
    #[must_use]
    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is the time from which compaction may drop tombstones and markers.
    #[must_use]
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    /// Whether bits are set that have no meaning.
    #[must_use]
    pub fn has_unused(self) -> bool {
        self.0 & Self::UNUSED != 0
    }
}
