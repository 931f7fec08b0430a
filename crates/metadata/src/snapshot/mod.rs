//! A handle on the state as of one revision, written out in checked pieces and read back.
//!
//! | part | bytes, little-endian |
//! | --- | --- |
//! | header | magic `TMMDSNAP` (8), version 1 or 2 (2), zero (2), feature level (4), CRC-32C of these 16 (4) |
//! | piece, any number | payload length, 1..=1 MiB (4), CRC-32C of the payload (4), payload |
//! | end | zero (4), CRC-32C of the CRCs of the header and all pieces in order (4) |
//!
//! The payloads together are seven sections (six in version 1, which is read too): tag (1), count (8), and per record its
//! length (4) and its bytes (postcard). Version 3 has further sections behind them, each only when it is not empty, tags
//! ascending. A state that needs none of them is written as version 2, so that older binaries read it.

mod read;
mod write;

pub use read::SnapshotError;
pub use write::Pieces;

use tidemill_types::Revision;

use crate::State;

/// Newest version of the snapshot's bytes.
pub const SNAPSHOT_VERSION: u16 = 3;
/// Oldest version that is read: it has no section of groups.
const OLDEST_VERSION: u16 = 1;
/// Seven sections and nothing else.
const PLAIN_VERSION: u16 = 2;
/// Largest payload of a piece, bytes.
pub const SNAPSHOT_PIECE_LEN: usize = 1 << 20;
const MAGIC: &[u8; 8] = b"TMMDSNAP";
const HEADER_LEN: usize = 20;
/// Largest record in a snapshot, bytes (a session with all its replies, a partition with the longest chain).
const MAX_RECORD_LEN: usize = 64 << 20;

const COUNTERS: u8 = 1;
const MEMBERS: u8 = 2;
const SESSIONS: u8 = 3;
const TOPICS: u8 = 4;
const PARTITIONS: u8 = 5;
const LEDGERS: u8 = 6;
const GROUPS: u8 = 7;
// Only in version 3, only when not empty.
const CONTROLS: u8 = 8;
const OPERATOR: u8 = 9;

/// The version that a state needs.
fn version_of(state: &State) -> u16 {
    let plain = state.controls.len() == 0 && state.operator.epoch == 0;
    if plain { PLAIN_VERSION } else { SNAPSHOT_VERSION }
}

/// The state as of one revision. Shares its memory with the state that it was taken from.
#[derive(Clone, Debug)]
pub struct Snapshot {
    state: State,
}

impl Snapshot {
    pub(crate) fn of(state: State) -> Self {
        Self { state }
    }

    /// Revision of the last command in it.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.state.revision()
    }

    /// The state in it.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its bytes, piece by piece, each at most [`SNAPSHOT_PIECE_LEN`] and 8 bytes long: concatenated they are the
    /// snapshot. The iterator holds its own handle and can be moved to another thread.
    #[must_use]
    pub fn pieces(&self) -> Pieces {
        Pieces::new(self.state.clone(), SNAPSHOT_PIECE_LEN)
    }

    /// All its bytes at once.
    ///
    /// # Errors
    /// `Record` when a record cannot be written.
    pub fn encode(&self) -> Result<Vec<u8>, SnapshotError> {
        let mut all = Vec::new();
        for piece in self.pieces() {
            all.extend_from_slice(&piece?);
        }
        Ok(all)
    }
}
