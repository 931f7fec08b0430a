//! Writing.

use std::ops::Bound;

use serde::Serialize;
use tidemill_types::entry::crc32c;
use tidemill_types::{GroupName, LedgerId, MemberId, PartitionId, SessionId, TopicId};

use super::{
    CONTROLS, COUNTERS, GROUPS, LEDGERS, MAGIC, MAX_RECORD_LEN, MEMBERS, OPERATOR, PARTITIONS, SESSIONS,
    SnapshotError, TOPICS, version_of,
};
use crate::State;
use crate::cow::CowMap;

/// Where writing stands: a section, and the last record written of it.
#[derive(Debug)]
enum At {
    Header,
    Counters,
    Members(Option<MemberId>),
    Sessions(Option<SessionId>),
    Topics(Option<TopicId>),
    Partitions(Option<PartitionId>),
    Ledgers(Option<LedgerId>),
    Groups(Option<GroupName>),
    Controls(Option<TopicId>),
    Operator,
    End,
    Done,
}

/// The bytes of a snapshot, piece by piece.
#[derive(Debug)]
pub struct Pieces {
    state: State,
    piece_len: usize,
    at: At,
    /// Written and not yet handed out; at most a piece and a record.
    buffer: Vec<u8>,
    crcs: Vec<u8>,
}

impl Pieces {
    pub(super) fn new(state: State, piece_len: usize) -> Self {
        Self { state, piece_len, at: At::Header, buffer: Vec::new(), crcs: Vec::new() }
    }

    fn header(&mut self) -> Vec<u8> {
        let mut h = MAGIC.to_vec();
        h.extend_from_slice(&version_of(&self.state).to_le_bytes());
        h.extend_from_slice(&[0, 0]);
        h.extend_from_slice(&self.state.counters.feature_level.to_le_bytes());
        self.push_crc(&mut h, 0);
        h
    }

    /// Appends the CRC of `bytes[from..]` to `bytes` and to the list that the end covers.
    fn push_crc(&mut self, bytes: &mut Vec<u8>, from: usize) {
        let crc = crc32c(&[&bytes[from..]]).to_le_bytes();
        bytes.extend_from_slice(&crc);
        self.crcs.extend_from_slice(&crc);
    }

    fn piece(&mut self) -> Option<Vec<u8>> {
        let len = self.buffer.len().min(self.piece_len);
        let rest = self.buffer.split_off(len);
        let payload = std::mem::replace(&mut self.buffer, rest);
        let crc = crc32c(&[&payload]).to_le_bytes();
        self.crcs.extend_from_slice(&crc);
        let mut piece = Vec::with_capacity(payload.len() + 8);
        piece.extend_from_slice(&u32::try_from(len).ok()?.to_le_bytes());
        piece.extend_from_slice(&crc);
        piece.extend_from_slice(&payload);
        Some(piece)
    }

    /// Writes records until a piece is full or the section ends; says which section comes next.
    fn fill(&mut self) -> Result<(), SnapshotError> {
        let (state, buffer, full) = (&self.state, &mut self.buffer, self.piece_len);
        let next = match &mut self.at {
            At::Header | At::End | At::Done => None,
            At::Counters => {
                section(buffer, COUNTERS, 1);
                record(buffer, &state.counters)?;
                Some(At::Members(None))
            }
            At::Members(after) => {
                walk(buffer, full, MEMBERS, &state.members, after, |_, m, b| record(b, m.as_ref()))?
                    .then_some(At::Sessions(None))
            }
            At::Sessions(after) => {
                walk(buffer, full, SESSIONS, &state.sessions, after, |id, s, b| record(b, &(id, s.as_ref())))?
                    .then_some(At::Topics(None))
            }
            At::Topics(after) => {
                walk(buffer, full, TOPICS, &state.topics, after, |_, t, b| record(b, t.as_ref()))?
                    .then_some(At::Partitions(None))
            }
            At::Partitions(after) => {
                walk(buffer, full, PARTITIONS, &state.partitions, after, |_, p, b| record(b, p.as_ref()))?
                    .then_some(At::Ledgers(None))
            }
            At::Ledgers(after) => {
                walk(buffer, full, LEDGERS, &state.ledgers, after, |_, l, b| record(b, l.as_ref()))?
                    .then_some(At::Groups(None))
            }
            At::Groups(after) => {
                walk(buffer, full, GROUPS, &state.groups, after, |_, g, b| record(b, g.as_ref()))?
                    .then_some(At::Controls(None))
            }
            // An empty one is not written at all.
            At::Controls(_) if state.controls.len() == 0 => Some(At::Operator),
            At::Controls(after) => {
                walk(buffer, full, CONTROLS, &state.controls, after, |_, c, b| record(b, c.as_ref()))?
                    .then_some(At::Operator)
            }
            At::Operator => {
                if state.operator.epoch > 0 {
                    section(buffer, OPERATOR, 1);
                    record(buffer, &state.operator)?;
                }
                Some(At::End)
            }
        };
        if let Some(next) = next {
            self.at = next;
        }
        Ok(())
    }
}

fn section(buffer: &mut Vec<u8>, tag: u8, count: usize) {
    buffer.push(tag);
    buffer.extend_from_slice(&(count as u64).to_le_bytes());
}

fn record<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) -> Result<(), SnapshotError> {
    let bytes = postcard::to_stdvec(value).map_err(|e| SnapshotError::Record(e.to_string()))?;
    match u32::try_from(bytes.len()) {
        Ok(len) if bytes.len() <= MAX_RECORD_LEN => buffer.extend_from_slice(&len.to_le_bytes()),
        _ => return Err(SnapshotError::Record(format!("{} bytes in one record", bytes.len()))),
    }
    buffer.extend_from_slice(&bytes);
    Ok(())
}

/// Writes the records behind `after`; true when the section is complete.
fn walk<K: Ord + Clone, V: Clone>(
    buffer: &mut Vec<u8>,
    full: usize,
    tag: u8,
    map: &CowMap<K, V>,
    after: &mut Option<K>,
    write: impl Fn(&K, &V, &mut Vec<u8>) -> Result<(), SnapshotError>,
) -> Result<bool, SnapshotError> {
    if after.is_none() {
        section(buffer, tag, map.len());
    }
    let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    for (k, v) in map.range(from) {
        write(k, v, buffer)?;
        if buffer.len() >= full {
            *after = Some(k.clone());
            return Ok(false);
        }
    }
    Ok(true)
}

impl Iterator for Pieces {
    type Item = Result<Vec<u8>, SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.at {
            At::Done => return None,
            At::Header => {
                self.at = At::Counters;
                return Some(Ok(self.header()));
            }
            _ => {}
        }
        while self.buffer.len() < self.piece_len && !matches!(self.at, At::End) {
            if let Err(e) = self.fill() {
                self.at = At::Done;
                return Some(Err(e));
            }
        }
        if !self.buffer.is_empty() {
            return self.piece().map(Ok);
        }
        self.at = At::Done;
        let mut end = 0u32.to_le_bytes().to_vec();
        end.extend_from_slice(&crc32c(&[&self.crcs]).to_le_bytes());
        Some(Ok(end))
    }
}
