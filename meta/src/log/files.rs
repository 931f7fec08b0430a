//! The two small files beside the log, each replaced by a durable rename: `vote` and `purged`.
//!
//! | offset | bytes | `vote` | `purged` |
//! | --- | --- | --- | --- |
//! | 0 | 8 | magic `TMMDVOTE` | magic `TMMDPURG` |
//! | 8 | 2 | version, 1 | version, 1 |
//! | 10 | 1 | 1 when granted by a quorum, else 0 | 0 |
//! | 11 | 5 | zero | zero |
//! | 16 | 8 | term | term |
//! | 24 | 8 | node voted for | index |
//! | 32 | 4 | CRC-32C of bytes 0..32 | the same |

use std::{
    io,
    path::{Path, PathBuf},
};

use tidemill_runtime::io::{Disk, read_all, write_durably};
use tidemill_types::entry::crc32c;

use crate::{
    MetaStartError,
    types::{LogId, Vote, log_id, term_of},
};

const VOTE: &[u8; 8] = b"TMMDVOTE";
const PURGED: &[u8; 8] = b"TMMDPURG";
const VERSION: u16 = 1;
const LEN: usize = 36;

fn encode(magic: &[u8; 8], flag: u8, a: u64, b: u64) -> [u8; LEN] {
    let mut out = [0; LEN];
    out[..8].copy_from_slice(magic);
    out[8..10].copy_from_slice(&VERSION.to_le_bytes());
    out[10] = flag;
    out[16..24].copy_from_slice(&a.to_le_bytes());
    out[24..32].copy_from_slice(&b.to_le_bytes());
    let crc = crc32c(&[&out[..32]]);
    out[32..].copy_from_slice(&crc.to_le_bytes());
    out
}

fn decode(magic: &[u8; 8], b: &[u8]) -> Result<(u8, u64, u64), String> {
    if b.len() != LEN || &b[..8] != magic {
        return Err("not a file of this kind".to_owned());
    }
    if crc32c(&[&b[..32]]).to_le_bytes() != b[32..] {
        return Err("its checksum does not match".to_owned());
    }
    let version = u16::from_le_bytes([b[8], b[9]]);
    if version != VERSION {
        return Err(format!("version {version}, only {VERSION} is known"));
    }
    let word = |at: usize| {
        let mut x = [0; 8];
        x.copy_from_slice(&b[at..at + 8]);
        u64::from_le_bytes(x)
    };
    Ok((b[10], word(16), word(24)))
}

fn read(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    magic: &[u8; 8],
) -> Result<Option<(u8, u64, u64)>, MetaStartError> {
    let path: PathBuf = dir.join(name);
    let bytes = read_all(disk, &path, LEN as u64).map_err(|e| MetaStartError::io("reading", &path, e))?;
    bytes
        .map(|b| {
            decode(magic, &b).map_err(|why| MetaStartError::Corrupt {
                path,
                offset: 0,
                why,
                dir: dir.to_path_buf(),
            })
        })
        .transpose()
}

/// The vote of a member's folder; `None` when it never voted.
pub(super) fn read_vote_file(disk: &dyn Disk, dir: &Path) -> Result<Option<Vote>, MetaStartError> {
    Ok(read(disk, dir, "vote", VOTE)?.map(|(committed, term, node)| {
        if committed == 1 { Vote::new_committed(term, node) } else { Vote::new(term, node) }
    }))
}

pub(super) fn write_vote(disk: &dyn Disk, dir: &Path, vote: &Vote) -> io::Result<()> {
    let bytes = encode(VOTE, u8::from(vote.committed), vote.leader_id.term, vote.leader_id.voted_for);
    write_durably(disk, &dir.join("vote"), &bytes)
}

pub(super) fn read_purged(disk: &dyn Disk, dir: &Path) -> Result<Option<LogId>, MetaStartError> {
    Ok(read(disk, dir, "purged", PURGED)?.map(|(_, term, index)| log_id(term, index)))
}

pub(super) fn write_purged(disk: &dyn Disk, dir: &Path, upto: &LogId) -> io::Result<()> {
    write_durably(disk, &dir.join("purged"), &encode(PURGED, 0, term_of(upto), upto.index))
}
