//! Payloads between members: a version byte, then openraft's message in postcard.

use serde::{Serialize, de::DeserializeOwned};

/// Version of the payloads. Members of two neighbouring releases speak to each other.
const VERSION: u8 = 1;
/// Largest message: a group of replicated entries with room to spare.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;

pub(super) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    postcard::to_extend(value, vec![VERSION]).map_err(|e| e.to_string())
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => match postcard::take_from_bytes(rest) {
            Ok((value, [])) => Ok(value),
            Ok(_) => Err("bytes behind a raft message".to_owned()),
            Err(e) => Err(format!("a raft message cannot be read: {e}")),
        },
        Some((v, _)) => Err(format!("a raft message of version {v}, only {VERSION} is known")),
        None => Err("an empty raft message".to_owned()),
    }
}
