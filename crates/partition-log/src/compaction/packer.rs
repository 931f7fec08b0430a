//! Entries and ledgers of the output.
//!
//! ```text
//! ledger:  data data data ... [state] index      each ledger covers whole offsets, from its base to the next one's
//! ```
//!
//! Nothing is written twice: whoever drives it appends what comes out, in order.

use bytes::Bytes;
use tidemill_record::BatchHeader;
use tidemill_types::{EntryId, Offset};

use crate::{
    StoredBatch,
    envelope::{Compaction, Envelope, Kind, MAX_RECORDS},
    index::{IndexBuilder, Position},
};

/// Sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackerConfig {
    /// An entry is full at so many bytes.
    pub entry_bytes: usize,
    /// A ledger is full at so many bytes.
    pub ledger_bytes: u64,
    /// A ledger has at most so much append time, ms: retention counts in whole ledgers.
    pub ledger_ms: i64,
}

/// What to do with the output, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packed {
    /// Append this entry to the current ledger; the first one opens it.
    Entry {
        /// Its envelope.
        envelope: Envelope,
        /// Its body.
        body: Vec<Bytes>,
    },
    /// Close the current ledger, which covers so many offsets.
    Close {
        /// Offsets.
        span: u64,
    },
}

/// Packs what a pass keeps.
#[derive(Debug)]
pub struct Packer {
    config: PackerConfig,
    /// Offset of the current ledger's first record.
    base: Offset,
    compaction: Compaction,
    /// Entries and bytes of the current ledger.
    entries: i64,
    bytes: u64,
    first_time_ms: Option<i64>,
    index: IndexBuilder,
    /// The entry that is being filled.
    body: Vec<Bytes>,
    body_bytes: usize,
    first: Offset,
    end: Offset,
    time_ms: i64,
    max_timestamp_ms: i64,
    so_far_ms: i64,
    state: Option<(EntryId, Vec<Bytes>)>,
}

impl Packer {
    /// Begins at the base of the first ledger that is replaced.
    #[must_use]
    pub fn new(config: PackerConfig, base: Offset) -> Self {
        Self {
            config,
            base,
            compaction: Compaction::Clean,
            entries: 0,
            bytes: 0,
            first_time_ms: None,
            index: IndexBuilder::default(),
            body: Vec::new(),
            body_bytes: 0,
            first: base,
            end: base,
            time_ms: 0,
            max_timestamp_ms: -1,
            so_far_ms: -1,
            state: None,
        }
    }

    /// Takes a batch whose bytes carry its base offset; batches come in order.
    pub fn add(&mut self, batch: &StoredBatch, header: &BatchHeader, out: &mut Vec<Packed>) {
        let end = Offset(batch.base_offset.0 + i64::from(header.last_offset_delta) + 1);
        let first = if self.body.is_empty() { batch.base_offset } else { self.first };
        let span = end.0 - first.0;
        // An entry has one append time: that of its last batch, in the second of all the others, however often it is packed.
        let other_second =
            !self.body.is_empty() && self.time_ms.div_euclid(1_000) != batch.append_time_ms.div_euclid(1_000);
        let full = other_second
            || self.body_bytes + batch.bytes.len() > self.config.entry_bytes
            || span > i64::from(MAX_RECORDS);
        if full {
            self.flush(out);
        }
        let age = batch.append_time_ms - self.first_time_ms.unwrap_or(batch.append_time_ms);
        let ledger_full =
            self.bytes + self.body_bytes as u64 >= self.config.ledger_bytes || age > self.config.ledger_ms;
        if ledger_full {
            self.close(batch.base_offset, out);
        }
        if self.body.is_empty() {
            self.first = batch.base_offset;
        }
        self.first_time_ms.get_or_insert(batch.append_time_ms);
        self.body.push(batch.bytes.clone());
        self.body_bytes += batch.bytes.len();
        self.end = end;
        self.time_ms = self.time_ms.max(batch.append_time_ms);
        self.max_timestamp_ms = self.max_timestamp_ms.max(header.max_timestamp);
    }

    /// Everything below `at` was looked through; what comes now is a rest.
    pub fn begin_rest(&mut self, at: Offset, out: &mut Vec<Packed>) {
        self.close(at, out);
        self.compaction = Compaction::Rest;
    }

    /// Ends the output at `end`, behind which the next ledger of the chain begins: with the producers' state as of there, in
    /// pieces (none when it is not known), and the time of the last append that is replaced.
    pub fn finish(mut self, end: Offset, time_ms: i64, state: Vec<Bytes>, out: &mut Vec<Packed>) {
        self.time_ms = self.time_ms.max(time_ms);
        self.state = (!state.is_empty()).then_some((EntryId::NONE, state));
        if end > self.base {
            self.close(end, out);
        }
    }

    fn envelope(&self, kind: Kind, next: Offset) -> Envelope {
        Envelope {
            kind,
            compaction: self.compaction,
            count: 0,
            base_offset: next,
            append_time_ms: self.time_ms,
            max_timestamp_ms: -1,
            max_timestamp_so_far_ms: self.so_far_ms,
            state_entry: self.state.as_ref().map_or(EntryId::NONE, |s| s.0),
            hashes: Bytes::new(),
        }
    }

    fn push(&mut self, envelope: Envelope, body: Vec<Bytes>, out: &mut Vec<Packed>) {
        self.entries += 1;
        self.bytes += body.iter().map(|b| b.len() as u64).sum::<u64>();
        out.push(Packed::Entry { envelope, body });
    }

    fn flush(&mut self, out: &mut Vec<Packed>) {
        if self.body.is_empty() {
            return;
        }
        self.so_far_ms = self.so_far_ms.max(self.max_timestamp_ms);
        let envelope = Envelope {
            count: u32::try_from(self.end.0 - self.first.0).unwrap_or(MAX_RECORDS),
            max_timestamp_ms: self.max_timestamp_ms,
            max_timestamp_so_far_ms: self.so_far_ms,
            ..self.envelope(Kind::Data, self.first)
        };
        let at = Position {
            entry: EntryId(self.entries),
            offset: self.first,
            max_timestamp_so_far_ms: self.so_far_ms,
        };
        self.index.note(at, self.body_bytes as u64);
        let body = std::mem::take(&mut self.body);
        self.body_bytes = 0;
        self.max_timestamp_ms = -1;
        self.first = self.end;
        self.push(envelope, body, out);
    }

    /// Ends the current ledger in front of `next`; one that would cover nothing is none.
    fn close(&mut self, next: Offset, out: &mut Vec<Packed>) {
        self.flush(out);
        let span = u64::try_from(next.0 - self.base.0).unwrap_or(0);
        if span == 0 {
            return;
        }
        if let Some((first, pieces)) = &mut self.state {
            *first = EntryId(self.entries);
            let pieces = std::mem::take(pieces);
            let envelope = Envelope { state_entry: EntryId::NONE, ..self.envelope(Kind::State, next) };
            for piece in pieces {
                self.push(envelope.clone(), vec![piece], out);
            }
        }
        // Its envelope says to whoever looks at the end of the ledger what it is; every ledger has one.
        let index = std::mem::take(&mut self.index);
        self.push(self.envelope(Kind::Index, next), vec![index.encode()], out);
        out.push(Packed::Close { span });
        (self.base, self.entries, self.bytes, self.first_time_ms) = (next, 0, 0, None);
        self.first = next;
        self.end = next;
    }
}
