//! The bytes of requests, results, queries, answers and watched changes: a version byte, then postcard.
//!
//! Used by the quorum and by its clients; the same request bytes stand in the raft log. Table in
//! `docs/formats/metadata.md`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tidemill_types::meta::{Answer, MetaView, Query, Rejection, Reply, Request, Watched};
use tidemill_types::{LanePosition, TopicControl};

/// First byte of everything that is encoded here.
pub const CODEC_VERSION: u8 = 1;
/// Longest encoded request, bytes.
pub const MAX_REQUEST_LEN: usize = 4 << 20;
/// Longest encoded result of a command, bytes.
pub const MAX_RESULT_LEN: usize = 64 << 20;
/// Longest encoded query, bytes (a trial of a command).
pub const MAX_QUERY_LEN: usize = 4 << 20;
/// Longest encoded answer, bytes (a view of a whole cluster).
pub const MAX_ANSWER_LEN: usize = 512 << 20;
/// Longest encoded event of a watch, bytes.
pub const MAX_WATCHED_LEN: usize = 512 << 20;

/// Longest encoded piece of a view, bytes.
pub const MAX_VIEW_LEN: usize = 16 << 20;
/// Longest encoded list of a bookie's positions, bytes.
pub const MAX_POSITIONS_LEN: usize = 16 << 10;

/// Why bytes were refused, or a value could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// No byte at all.
    #[error("{what} is empty")]
    Empty {
        /// What was to be read.
        what: &'static str,
    },
    /// Written by another version.
    #[error("{what} has version {version}, only {CODEC_VERSION} is known")]
    Version {
        /// What was to be read.
        what: &'static str,
        /// Its version byte.
        version: u8,
    },
    /// Longer than its ceiling.
    #[error("{what} has {len} bytes, at most {max} allowed")]
    TooLong {
        /// What.
        what: &'static str,
        /// Its length.
        len: usize,
        /// The ceiling.
        max: usize,
    },
    /// Not what postcard wrote for this type.
    #[error("{what} cannot be read: {why}")]
    Malformed {
        /// What was to be read.
        what: &'static str,
        /// postcard's word for it.
        why: String,
    },
    /// Bytes behind the value.
    #[error("{extra} bytes follow the end of {what}")]
    Trailing {
        /// What was read.
        what: &'static str,
        /// How many bytes.
        extra: usize,
    },
}

fn encode<T: Serialize>(what: &'static str, max: usize, value: &T) -> Result<Vec<u8>, CodecError> {
    let bytes = postcard::to_extend(value, vec![CODEC_VERSION])
        .map_err(|e| CodecError::Malformed { what, why: e.to_string() })?;
    if bytes.len() > max {
        return Err(CodecError::TooLong { what, len: bytes.len(), max });
    }
    Ok(bytes)
}

fn decode<T: DeserializeOwned>(what: &'static str, max: usize, bytes: &[u8]) -> Result<T, CodecError> {
    if bytes.len() > max {
        return Err(CodecError::TooLong { what, len: bytes.len(), max });
    }
    let (&version, rest) = bytes.split_first().ok_or(CodecError::Empty { what })?;
    if version != CODEC_VERSION {
        return Err(CodecError::Version { what, version });
    }
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) => Ok(value),
        Ok((_, extra)) => Err(CodecError::Trailing { what, extra: extra.len() }),
        Err(e) => Err(CodecError::Malformed { what, why: e.to_string() }),
    }
}

macro_rules! codec {
    ($($what:literal, $ty:ty, $max:ident, $enc:ident, $dec:ident;)*) => {$(
        #[doc = concat!("Bytes of a ", $what, ".")]
        ///
        /// # Errors
        #[doc = concat!("`TooLong` above [`", stringify!($max), "`].")]
        pub fn $enc(value: &$ty) -> Result<Vec<u8>, CodecError> {
            encode($what, $max, value)
        }

        #[doc = concat!("Reads a ", $what, "; every byte must belong to it.")]
        ///
        /// # Errors
        /// Any [`CodecError`].
        pub fn $dec(bytes: &[u8]) -> Result<$ty, CodecError> {
            decode($what, $max, bytes)
        }
    )*};
}

codec! {
    "request", Request, MAX_REQUEST_LEN, encode_request, decode_request;
    "result", Result<Reply, Rejection>, MAX_RESULT_LEN, encode_result, decode_result;
    "query", Query, MAX_QUERY_LEN, encode_query, decode_query;
    "answer", Answer, MAX_ANSWER_LEN, encode_answer, decode_answer;
    "watched event", Watched, MAX_WATCHED_LEN, encode_watched, decode_watched;
    "piece of a view", MetaView, MAX_VIEW_LEN, encode_view, decode_view;
    "list of topic controls", Vec<TopicControl>, MAX_VIEW_LEN, encode_controls, decode_controls;
    "list of positions", Vec<LanePosition>, MAX_POSITIONS_LEN, encode_positions, decode_positions;
}
