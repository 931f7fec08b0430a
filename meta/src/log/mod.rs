//! The raft log on disk: segmented, append-only, checksummed, fsynced before it answers.
//!
//! One thread does all writing, so votes, appends, truncations and purges reach the disk in the order in which raft asks
//! for them; several appends that wait share one fdatasync. Bytes: `docs/formats/raft-log.md`.

mod files;
mod format;
mod load;
mod payload;
mod reader;
pub mod recode;
mod store;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    payload::{decode_membership, encode_membership},
    store::LogStore,
};
