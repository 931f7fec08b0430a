//! Reading: every length has a ceiling, every byte a checksum, and the state must be consistent in itself.

use std::io::Read;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tidemill_types::entry::crc32c;
use tidemill_types::{
    GroupRecord, LedgerRecord, Member, PartitionRecord, SessionId, TopicControl, TopicRecord,
};

use super::{
    CONTROLS, COUNTERS, GROUPS, HEADER_LEN, LEDGERS, MAGIC, MAX_RECORD_LEN, MEMBERS, OLDEST_VERSION,
    OPERATOR, PARTITIONS, PLAIN_VERSION, SESSIONS, SNAPSHOT_PIECE_LEN, SNAPSHOT_VERSION, TOPICS, version_of,
};
use crate::State;
use crate::cow::CowMap;
use crate::state::{FEATURE_LEVEL, Session};

/// Why a snapshot was refused, or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Reading failed, or the bytes end too early.
    #[error("snapshot cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// Not a snapshot.
    #[error("this is no snapshot of the metadata")]
    Magic,
    /// Written by another version, or by one with more features.
    #[error("snapshot has version {version} and feature level {feature_level}, which are not known here")]
    Version {
        /// Version of the bytes.
        version: u16,
        /// Feature level of the state.
        feature_level: u32,
    },
    /// A checksum does not match.
    #[error("snapshot is damaged in {0}")]
    Damaged(&'static str),
    /// A length, tag, count or order that no snapshot has.
    #[error("snapshot is malformed: {0}")]
    Malformed(&'static str),
    /// A record cannot be read or written.
    #[error("record of a snapshot: {0}")]
    Record(String),
    /// The records contradict each other.
    #[error("snapshot is not consistent: {0}")]
    Inconsistent(String),
}

struct Payload<R> {
    from: R,
    version: u16,
    piece: Vec<u8>,
    at: usize,
    crcs: Vec<u8>,
    ended: bool,
}

fn array<const N: usize, R: Read>(from: &mut R) -> Result<[u8; N], SnapshotError> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut b = [0; 4];
    b.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(b)
}

impl<R: Read> Payload<R> {
    fn open(mut from: R) -> Result<Self, SnapshotError> {
        let h: [u8; HEADER_LEN] = array(&mut from)?;
        if &h[..8] != MAGIC {
            return Err(SnapshotError::Magic);
        }
        if crc32c(&[&h[..16]]) != u32_at(&h, 16) {
            return Err(SnapshotError::Damaged("its header"));
        }
        let (version, feature_level) = (u16::from_le_bytes([h[8], h[9]]), u32_at(&h, 12));
        if !(OLDEST_VERSION..=SNAPSHOT_VERSION).contains(&version)
            || feature_level > FEATURE_LEVEL
            || h[10..12] != [0, 0]
        {
            return Err(SnapshotError::Version { version, feature_level });
        }
        Ok(Self { from, version, piece: Vec::new(), at: 0, crcs: h[16..].to_vec(), ended: false })
    }

    /// The next piece; `false` at the end, whose checksum then matched.
    fn next_piece(&mut self) -> Result<bool, SnapshotError> {
        let head: [u8; 8] = array(&mut self.from)?;
        let len = u32_at(&head, 0) as usize;
        if len == 0 {
            if crc32c(&[&self.crcs]) != u32_at(&head, 4) {
                return Err(SnapshotError::Damaged("its order of pieces"));
            }
            self.ended = true;
            return Ok(false);
        }
        if len > SNAPSHOT_PIECE_LEN {
            return Err(SnapshotError::Malformed("a piece above 1 MiB"));
        }
        self.piece.resize(len, 0);
        self.from.read_exact(&mut self.piece)?;
        self.at = 0;
        if crc32c(&[&self.piece]) != u32_at(&head, 4) {
            return Err(SnapshotError::Damaged("a piece"));
        }
        self.crcs.extend_from_slice(&head[4..]);
        Ok(true)
    }

    fn take(&mut self, len: usize) -> Result<Vec<u8>, SnapshotError> {
        let mut out = Vec::with_capacity(len.min(SNAPSHOT_PIECE_LEN));
        while out.len() < len {
            if self.at == self.piece.len() && (self.ended || !self.next_piece()?) {
                return Err(SnapshotError::Malformed("it ends within a section"));
            }
            let n = (len - out.len()).min(self.piece.len() - self.at);
            out.extend_from_slice(&self.piece[self.at..self.at + n]);
            self.at += n;
        }
        Ok(out)
    }

    fn section(&mut self, tag: u8) -> Result<u64, SnapshotError> {
        if self.take(1)?[0] != tag {
            return Err(SnapshotError::Malformed("a section out of order"));
        }
        self.count()
    }

    fn count(&mut self) -> Result<u64, SnapshotError> {
        let mut count = [0; 8];
        count.copy_from_slice(&self.take(8)?);
        Ok(u64::from_le_bytes(count))
    }

    /// The tag of one more section; `None` at the end.
    fn further_section(&mut self) -> Result<Option<u8>, SnapshotError> {
        if self.at == self.piece.len() && (self.ended || !self.next_piece()?) {
            return Ok(None);
        }
        Ok(Some(self.take(1)?[0]))
    }

    fn record<T: DeserializeOwned>(&mut self) -> Result<T, SnapshotError> {
        let len = u32_at(&self.take(4)?, 0) as usize;
        if len > MAX_RECORD_LEN {
            return Err(SnapshotError::Malformed("a record above 64 MiB"));
        }
        match postcard::take_from_bytes(&self.take(len)?) {
            Ok((value, [])) => Ok(value),
            Ok(_) => Err(SnapshotError::Malformed("bytes behind a record")),
            Err(e) => Err(SnapshotError::Record(e.to_string())),
        }
    }

    fn map<K: Ord + Clone, V: Clone, T: DeserializeOwned>(
        &mut self,
        tag: u8,
        split: impl Fn(T) -> (K, V),
    ) -> Result<CowMap<K, V>, SnapshotError> {
        let count = self.section(tag)?;
        self.records(count, split)
    }

    fn records<K: Ord + Clone, V: Clone, T: DeserializeOwned>(
        &mut self,
        count: u64,
        split: impl Fn(T) -> (K, V),
    ) -> Result<CowMap<K, V>, SnapshotError> {
        let mut map = CowMap::default();
        let mut last: Option<K> = None;
        for _ in 0..count {
            let (k, v) = split(self.record()?);
            if last.is_some_and(|l| l >= k) {
                return Err(SnapshotError::Malformed("records out of order"));
            }
            last = Some(k.clone());
            map.insert(k, v);
        }
        Ok(map)
    }

    /// Checks that nothing follows.
    fn close(mut self) -> Result<(), SnapshotError> {
        if self.at != self.piece.len() || (!self.ended && self.next_piece()?) {
            return Err(SnapshotError::Malformed("payload behind the last section"));
        }
        match self.from.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(SnapshotError::Malformed("bytes behind the end")),
        }
    }
}

impl State {
    /// Reads a snapshot.
    ///
    /// # Errors
    /// Any [`SnapshotError`]; a state is never returned from bytes that are not whole, or whose records contradict
    /// each other.
    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::read_from(bytes)
    }

    /// Reads a snapshot to the end of `from`; wrap a file into a buffered reader.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn read_from(from: impl Read) -> Result<Self, SnapshotError> {
        let mut p = Payload::open(from)?;
        if p.section(COUNTERS)? != 1 {
            return Err(SnapshotError::Malformed("not one set of counters"));
        }
        let mut state = Self { counters: p.record()?, ..Self::default() };
        state.members = p.map(MEMBERS, |m: Member| (m.id, Arc::new(m)))?;
        state.sessions = p.map(SESSIONS, |(id, s): (SessionId, Session)| (id, Arc::new(s)))?;
        state.topics = p.map(TOPICS, |t: TopicRecord| (t.id, Arc::new(t)))?;
        state.partitions = p.map(PARTITIONS, |r: PartitionRecord| (r.id, Arc::new(r)))?;
        let ledgers = p.map(LEDGERS, |l: LedgerRecord| (l.id, Arc::new(l)))?;
        if p.version > OLDEST_VERSION {
            state.groups = p.map(GROUPS, |g: GroupRecord| (g.name.clone(), Arc::new(g)))?;
        }
        let mut last_tag = GROUPS;
        while p.version > PLAIN_VERSION
            && let Some(tag) = p.further_section()?
        {
            if tag <= last_tag {
                return Err(SnapshotError::Malformed("a section out of order"));
            }
            last_tag = tag;
            let count = p.count()?;
            match (tag, count) {
                (_, 0) => return Err(SnapshotError::Malformed("an empty section that need not be there")),
                (CONTROLS, n) => state.controls = p.records(n, |c: TopicControl| (c.topic, Arc::new(c)))?,
                (OPERATOR, 1) => state.operator = p.record()?,
                _ => return Err(SnapshotError::Malformed("a section that is not known")),
            }
        }
        let version = p.version;
        p.close()?;
        if version > PLAIN_VERSION && version != version_of(&state) {
            return Err(SnapshotError::Malformed("a version that its content does not need"));
        }
        for (_, t) in state.topics.iter() {
            state.names.insert(t.name.clone(), t.id);
        }
        for (_, l) in ledgers.iter() {
            state.put_ledger(LedgerRecord::clone(l));
        }
        state.check().map_err(SnapshotError::Inconsistent)?;
        Ok(state)
    }
}
