//! Payloads of log entries.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use openraft::EntryPayload;
use serde::{Deserialize, Serialize};

use super::format::{Kind, MAX_PAYLOAD};
use crate::types::{Entry, LogId, Membership, Peer, Proposal, log_id, term_of};

/// A membership as it is stored: postcard of these fields in this order.
#[derive(Serialize, Deserialize)]
struct StoredNodes {
    /// One set of voters, two while the change is joint.
    voters: Vec<BTreeSet<u64>>,
    nodes: BTreeMap<u64, Peer>,
}

/// An entry as it stands in the log.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) kind: Kind,
    pub(super) term: u64,
    pub(super) payload: Bytes,
}

/// Bytes of a membership.
pub(crate) fn encode_membership(m: &Membership) -> Result<Vec<u8>, String> {
    let stored = StoredNodes {
        voters: m.get_joint_config().clone(),
        nodes: m.nodes().map(|(id, peer)| (*id, peer.clone())).collect(),
    };
    postcard::to_allocvec(&stored).map_err(|e| e.to_string())
}

/// Reads a membership.
pub(crate) fn decode_membership(bytes: &[u8]) -> Result<Membership, String> {
    let (stored, rest) = postcard::take_from_bytes::<StoredNodes>(bytes).map_err(|e| e.to_string())?;
    if !rest.is_empty() {
        return Err("bytes behind a membership".to_owned());
    }
    if stored.voters.is_empty() && stored.nodes.is_empty() {
        return Ok(Membership::default());
    }
    Membership::new(stored.voters, stored.nodes).map_err(|e| e.to_string())
}

pub(super) fn store(entry: Entry) -> Result<Stored, String> {
    let (kind, payload) = match entry.payload {
        EntryPayload::Blank => (Kind::Blank, Bytes::new()),
        EntryPayload::Normal(Proposal(bytes)) => (Kind::Command, bytes),
        EntryPayload::Membership(m) => (Kind::Membership, encode_membership(&m)?.into()),
    };
    if payload.len() > MAX_PAYLOAD {
        return Err(format!("an entry of {} bytes, at most {MAX_PAYLOAD} allowed", payload.len()));
    }
    Ok(Stored { kind, term: term_of(&entry.log_id), payload })
}

pub(super) fn load(index: u64, stored: &Stored) -> Result<Entry, String> {
    let payload = match stored.kind {
        Kind::Blank => EntryPayload::Blank,
        Kind::Command => EntryPayload::Normal(Proposal(stored.payload.clone())),
        Kind::Membership => EntryPayload::Membership(decode_membership(&stored.payload)?),
        Kind::Committed => return Err("a mark where an entry should stand".to_owned()),
    };
    let log_id: LogId = log_id(stored.term, index);
    Ok(Entry { log_id, payload })
}
