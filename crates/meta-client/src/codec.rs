//! The quorum's codec with this crate's errors.

use tidemill_metadata::codec::{self, CodecError};
use tidemill_types::{
    ErrorCode, LanePosition, TopicControl,
    meta::{Answer, MetaView, Query, Rejection, Reply, Request, Watched},
};

use crate::MetaError;

/// What this side wanted to say is too long.
fn refused(e: &CodecError) -> MetaError {
    let code = match e {
        CodecError::TooLong { .. } => ErrorCode::MessageTooLarge,
        _ => ErrorCode::InvalidArgument,
    };
    MetaError::Refused { code, why: e.to_string() }
}

/// What the other side said cannot be read.
fn malformed(e: &CodecError) -> MetaError {
    MetaError::Malformed { why: e.to_string() }
}

pub(crate) fn encode_request(r: &Request) -> Result<Vec<u8>, MetaError> {
    codec::encode_request(r).map_err(|e| refused(&e))
}

pub(crate) fn decode_result(b: &[u8]) -> Result<Result<Reply, Rejection>, MetaError> {
    codec::decode_result(b).map_err(|e| malformed(&e))
}

pub(crate) fn encode_query(q: &Query) -> Result<Vec<u8>, MetaError> {
    codec::encode_query(q).map_err(|e| refused(&e))
}

pub(crate) fn decode_answer(b: &[u8]) -> Result<Answer, MetaError> {
    codec::decode_answer(b).map_err(|e| malformed(&e))
}

pub(crate) fn decode_view(b: &[u8]) -> Result<MetaView, MetaError> {
    codec::decode_view(b).map_err(|e| malformed(&e))
}

pub(crate) fn decode_controls(b: &[u8]) -> Result<Vec<TopicControl>, MetaError> {
    codec::decode_controls(b).map_err(|e| malformed(&e))
}

pub(crate) fn decode_watched(b: &[u8]) -> Result<Watched, MetaError> {
    codec::decode_watched(b).map_err(|e| malformed(&e))
}

pub(crate) fn encode_positions(p: &Vec<LanePosition>) -> Result<Vec<u8>, MetaError> {
    codec::encode_positions(p).map_err(|e| refused(&e))
}
