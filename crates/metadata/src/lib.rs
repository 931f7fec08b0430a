//! The state machine of the metadata quorum: pure and deterministic.
//!
//! [`State::apply`] takes the commands of the replicated log one after the other and says what each did; it reads no
//! clock, draws nothing, and depends on nothing but the commands before. [`State::query`] answers reads,
//! [`State::snapshot`] is a cheap handle that is written out elsewhere, [`codec`] has the bytes of everything that
//! crosses a process boundary.
//!
//! What each command asks for stands in `docs/protocol/metadata.md`, the bytes in `docs/formats/metadata.md`.

pub mod codec;
pub mod limits;

mod command;
mod cow;
mod reject;
mod snapshot;
mod state;

pub use codec::{
    CodecError, decode_answer, decode_positions, decode_query, decode_request, decode_result, decode_view,
    decode_watched, encode_answer, encode_positions, encode_query, encode_request, encode_result,
    encode_view, encode_watched,
};
pub use snapshot::{Pieces, SNAPSHOT_PIECE_LEN, SNAPSHOT_VERSION, Snapshot, SnapshotError};
pub use state::{Applied, FEATURE_LEVEL, State, needed_level, unknown_level};
