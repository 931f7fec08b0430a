//! What a bookie asks of the allocator for each entry, on a real disk: a few small pieces, and never the entry's bytes.

#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "a test: a failure is a panic")]

use std::sync::Arc;

use allocation_counter::measure;
use bytes::Bytes;
use tidemill_runtime::io::RealDisk;
use tidemill_storage::*;
use tidemill_types::{ClusterId, Entry, EntryId, Incarnation, LedgerId};
use uuid::Uuid;

struct Nobody;

impl AckSink for Nobody {
    fn acked(&self, acks: Vec<(u64, AddOutcome)>) {
        assert!(acks.iter().all(|(_, o)| *o == AddOutcome::Ok));
    }
}

const BODY: usize = 64 << 10;

fn entries(from: u64, count: u64) -> Vec<AddRequest> {
    let body = Bytes::from(vec![0x5a; BODY]);
    (from..from + count)
        .map(|n| {
            let id = EntryId(n as i64);
            let e = Entry::encode(LedgerId(7), id, EntryId(id.0 - 1), 0, b"e", std::slice::from_ref(&body));
            AddRequest { request: n, entry: e.unwrap().bytes().clone(), kind: AddKind::Normal }
        })
        .collect()
}

#[test]
fn an_entry_costs_a_few_small_allocations() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = EngineConfig::new(vec![dir.path().join("lane")]);
    config.driver = Driver::Inline { wake: Arc::new(|| {}) };
    let mut scanned = Engine::open_scan(Arc::new(RealDisk), config).unwrap();
    scanned.write_pending(ClusterId(Uuid::from_u128(1)), Incarnation(1)).unwrap();
    let engine = scanned.finish(FinishBoot { limbo: false, mark: Some(LedgerId(0)) }).unwrap();
    let sink: Arc<dyn AckSink> = Arc::new(Nobody);
    let mut next = 0;
    let mut of = |count: u64| {
        let adds = entries(next, count);
        next += count;
        let counted = measure(|| {
            engine.add_batch(adds, &sink);
            engine.step();
        });
        (counted.count_total, counted.bytes_total)
    };
    // The first ones make the segment and grow what is used again.
    of(512);
    let ((few, _), (many, bytes)) = (of(64), of(128));
    assert!(many.saturating_sub(few) <= 64 * 3, "{few} allocations for 64 entries, {many} for 128");
    assert!(bytes < 128 * 2_000, "{bytes} bytes for 128 entries: are they copied?");
}
