//! A compacted log replays to the same map as a hash map in memory, whatever was written, however often it was compacted, with
//! whatever room for keys, and wherever a pass was cut off.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use tidemill_record::{Batch, BatchBuilder, BatchHeader, Compression, Limits, batches, records};
use tidemill_types::Offset;

use super::*;
use crate::{
    StoredBatch,
    envelope::{Compaction, Kind},
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
struct Ledger {
    base: i64,
    span: u64,
    compaction: Compaction,
    batches: Vec<StoredBatch>,
    has_state: bool,
}

/// One update: key, value (`None`: a tombstone), and whether the batch ends behind it.
type Update = (u8, Option<u8>, bool);

#[derive(Clone, Debug)]
enum Op {
    Write(Vec<Update>),
    Compact { keys: usize, dirty: usize, ledger_bytes: u64, crash: Option<u8>, later_ms: i64 },
}

#[derive(Default)]
struct Model {
    chain: Vec<Ledger>,
    /// Written and not linked: what a crash leaves.
    orphans: usize,
    end: i64,
    now_ms: i64,
    map: Map,
    last: BTreeMap<Vec<u8>, i64>,
}

const HORIZON_MS: i64 = 1_000;

fn key_of(k: u8) -> Vec<u8> {
    // Short ones stand in the map as they are, long ones by their hash.
    if k.is_multiple_of(2) { vec![k] } else { [&[k; 20][..], b"long"].concat() }
}

impl Model {
    fn write(&mut self, updates: &[Update]) {
        let base = self.end;
        let mut ledger =
            Ledger { base, span: 0, compaction: Compaction::None, batches: Vec::new(), has_state: true };
        let mut b = BatchBuilder::new(Limits::DEFAULT);
        let mut first = self.end;
        for (i, (k, v, ends)) in updates.iter().enumerate() {
            let (key, value) = (key_of(*k), v.map(|v| vec![v; 3]));
            b.append(self.now_ms, Some(&key), value.as_deref(), &[]).unwrap();
            match value {
                Some(v) => drop(self.map.insert(key.clone(), v)),
                None => drop(self.map.remove(&key)),
            }
            self.last.insert(key, self.end);
            self.end += 1;
            if *ends || i + 1 == updates.len() {
                let codec = if k.is_multiple_of(3) { Compression::Lz4 } else { Compression::None };
                let bytes = b.finish(codec, None).unwrap();
                let base_offset = Offset(first);
                ledger.batches.push(StoredBatch { base_offset, append_time_ms: self.now_ms, bytes });
                first = self.end;
            }
        }
        ledger.span = u64::try_from(self.end - base).unwrap();
        self.chain.push(ledger);
    }

    /// A pass over everything but the last ledger, as its driver does it.
    fn compact(&mut self, keys: usize, dirty: usize, ledger_bytes: u64, crash: Option<u8>) {
        let most = self.chain.len().saturating_sub(1);
        let clean = self.chain.iter().take_while(|l| l.compaction == Compaction::Clean).count().min(most);
        let mut taken = (clean + dirty.max(1)).min(most);
        if taken == clean {
            return;
        }
        let mut known = KeyMap::new(0, 0);
        let mut upto = None;
        'all: for (i, l) in self.chain.iter().enumerate().take(taken).skip(clean) {
            for b in &l.batches {
                let header = BatchHeader::parse(&b.bytes).unwrap();
                let count = usize::try_from(header.count).unwrap();
                if !known.is_empty() && known.len() + count > keys {
                    upto = Some(if i > clean { l.base } else { b.base_offset.0 });
                    taken = if i > clean { i } else { i + 1 };
                    break 'all;
                }
                known.admit(count);
                for r in records(&b.bytes, &Limits::DEFAULT).unwrap() {
                    let r = r.unwrap();
                    let at = Offset(b.base_offset.0 + i64::from(r.offset_delta));
                    assert_eq!(known.put(&r.key.unwrap(), at), Put::Known);
                }
            }
        }
        let end = self.chain.get(taken).map_or(self.end, |l| l.base);
        let upto = upto.unwrap_or(end);
        let bounds = Bounds {
            log_start: Offset(0),
            upto: Offset(upto),
            now_ms: self.now_ms,
            horizon_ms: self.now_ms + HORIZON_MS,
            expired_ms: None,
        };
        let mut filter = Filter::new(known, bounds, Limits::DEFAULT);
        let config = PackerConfig { entry_bytes: 200, ledger_bytes, ledger_ms: i64::MAX };
        let mut packer = Packer::new(config, Offset(self.chain[0].base));
        let mut packed = Vec::new();
        let mut in_rest = false;
        for b in self.chain[..taken].iter().flat_map(|l| &l.batches) {
            if !in_rest && b.base_offset.0 >= upto {
                in_rest = true;
                packer.begin_rest(Offset(upto), &mut packed);
            }
            if let Some(b) = filter.filter(b).unwrap().batch {
                packer.add(&b, &BatchHeader::parse(&b.bytes).unwrap(), &mut packed);
            }
        }
        packer.finish(Offset(end), self.now_ms, vec![Bytes::from_static(b"state")], &mut packed);
        let output = unpack(self.chain[0].base, packed);
        assert!(output.last().unwrap().has_state && !output.iter().rev().skip(1).any(|l| l.has_state));
        let total = output.iter().map(|l| l.span).sum::<u64>();
        assert_eq!(self.chain[0].base + i64::try_from(total).unwrap(), end, "the same offsets are covered");
        // The swap is one step: a crash comes before it or after it.
        match crash {
            Some(n) if n.is_multiple_of(2) => self.orphans += output.len(),
            _ => drop(self.chain.splice(..taken, output)),
        }
    }

    fn check(&self) {
        let mut map = Map::new();
        let mut seen = BTreeMap::new();
        let mut next = 0;
        let mut base = self.chain.first().map_or(0, |l| l.base);
        for l in &self.chain {
            assert_eq!(l.base, base);
            base += i64::try_from(l.span).unwrap();
            for b in &l.batches {
                for r in records(&b.bytes, &Limits::DEFAULT).unwrap() {
                    let r = r.unwrap();
                    let at = b.base_offset.0 + i64::from(r.offset_delta);
                    assert!(at >= next && at >= l.base && at < base, "offsets in order, within their ledger");
                    next = at + 1;
                    let key = r.key.unwrap().to_vec();
                    seen.insert(key.clone(), at);
                    match r.value {
                        Some(v) => drop(map.insert(key, v.to_vec())),
                        None => drop(map.remove(&key)),
                    }
                }
            }
        }
        assert_eq!(base, self.end);
        assert_eq!(map, self.map);
        for key in self.map.keys() {
            assert_eq!(seen.get(key), self.last.get(key), "the last record of a key keeps its offset");
        }
    }
}

/// Ledgers from what the packer gave, read as a reader does.
fn unpack(mut base: i64, packed: Vec<Packed>) -> Vec<Ledger> {
    let mut out = Vec::new();
    let mut batches_of = Vec::new();
    let (mut entries, mut compaction, mut has_state, mut last_kind) =
        (0, Compaction::None, false, Kind::Data);
    for p in packed {
        match p {
            Packed::Entry { envelope, body } => {
                let decoded = crate::envelope::Envelope::decode(&envelope.encode()).unwrap();
                assert_eq!(decoded, envelope);
                assert!(
                    entries == 0 || compaction == envelope.compaction,
                    "all entries of a ledger say the same"
                );
                compaction = envelope.compaction;
                entries += 1;
                last_kind = envelope.kind;
                has_state |= envelope.kind == Kind::State;
                assert_eq!(envelope.kind == Kind::Index && has_state, envelope.state_entry.0 >= 0);
                if envelope.kind != Kind::Data {
                    continue;
                }
                let mut at = envelope.base_offset.0;
                for b in batches(body.concat().into()) {
                    let Batch { header, bytes } = b.unwrap();
                    assert!(header.base_offset.0 >= at);
                    at = header.next_offset().0;
                    let append_time_ms = envelope.append_time_ms;
                    batches_of.push(StoredBatch { base_offset: header.base_offset, append_time_ms, bytes });
                }
                assert_eq!(at, envelope.next_offset().0);
            }
            Packed::Close { span } => {
                assert_eq!(last_kind, Kind::Index, "the end of every ledger says what it is");
                let batches = std::mem::take(&mut batches_of);
                out.push(Ledger { base, span, compaction, batches, has_state });
                base += i64::try_from(span).unwrap();
                (entries, has_state) = (0, false);
            }
        }
    }
    assert!(batches_of.is_empty());
    out
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let update = (0u8..12, proptest::option::weighted(0.8, any::<u8>()), any::<bool>());
    let write = proptest::collection::vec(update, 1..30).prop_map(Op::Write);
    let crash = proptest::option::weighted(0.3, any::<u8>());
    let compact = (1usize..20, 0usize..4, 50u64..2_000, crash, 0i64..2_000).prop_map(
        |(keys, dirty, ledger_bytes, crash, later_ms)| Op::Compact {
            keys,
            dirty,
            ledger_bytes,
            crash,
            later_ms,
        },
    );
    proptest::collection::vec(prop_oneof![3 => write, 2 => compact], 1..40)
}

proptest! {
    #[test]
    fn the_log_is_the_map(ops in ops()) {
        let mut m = Model { now_ms: 1_000_000, ..Model::default() };
        for op in ops {
            match op {
                Op::Write(updates) => m.write(&updates),
                Op::Compact { keys, dirty, ledger_bytes, crash, later_ms } => {
                    m.now_ms += later_ms;
                    m.compact(keys, dirty, ledger_bytes, crash);
                }
            }
            m.check();
        }
        // In the end: everything but the last ledger, with room for all keys, and once more after the horizon.
        for _ in 0..3 {
            m.now_ms += HORIZON_MS + 1;
            m.compact(1_000, 1_000, 1 << 30, None);
            m.check();
            m.write(&[(200, None, true)]);
        }
        m.compact(1_000, 1_000, 1 << 30, None);
        let clean = &m.chain[..m.chain.len() - 1];
        let mut keys: Vec<_> = clean.iter().flat_map(|l| &l.batches).flat_map(|b| {
            records(&b.bytes, &Limits::DEFAULT).unwrap().map(|r| r.unwrap().key.unwrap())
        }).collect();
        let all = keys.len();
        keys.sort();
        keys.dedup();
        prop_assert_eq!(keys.len(), all, "one record of each key");
        prop_assert!(all <= m.map.len() + 1, "tombstones are gone behind their horizon, all but the newest");
    }
}
