//! The quorum's codec with this crate's errors.

use serde::{Serialize, de::DeserializeOwned};
use tidemill_types::{
    ErrorCode, LanePosition,
    meta::{Answer, MetaView, Query, Rejection, Reply, Request, Watched},
};

use crate::MetaError;

const VERSION: u8 = 1;

fn enc<T: Serialize>(v: &T) -> Result<Vec<u8>, MetaError> {
    postcard::to_extend(v, vec![VERSION])
        .map_err(|e| MetaError::Refused { code: ErrorCode::InvalidArgument, why: e.to_string() })
}

fn dec<T: DeserializeOwned>(b: &[u8]) -> Result<T, MetaError> {
    let bad = |why: String| MetaError::Malformed { why };
    match b.split_first() {
        Some((&VERSION, rest)) => postcard::from_bytes(rest).map_err(|e| bad(e.to_string())),
        _ => Err(bad("another version".to_owned())),
    }
}

pub(crate) fn encode_request(r: &Request) -> Result<Vec<u8>, MetaError> {
    enc(r)
}
pub(crate) fn decode_result(b: &[u8]) -> Result<Result<Reply, Rejection>, MetaError> {
    dec(b)
}
pub(crate) fn encode_query(q: &Query) -> Result<Vec<u8>, MetaError> {
    enc(q)
}
pub(crate) fn decode_answer(b: &[u8]) -> Result<Answer, MetaError> {
    dec(b)
}
pub(crate) fn decode_view(b: &[u8]) -> Result<MetaView, MetaError> {
    dec(b)
}
pub(crate) fn decode_watched(b: &[u8]) -> Result<Watched, MetaError> {
    dec(b)
}
pub(crate) fn encode_positions(p: &Vec<LanePosition>) -> Result<Vec<u8>, MetaError> {
    enc(p)
}
