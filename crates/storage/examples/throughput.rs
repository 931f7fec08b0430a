//! Adds against plain write + fdatasync on the same disk: `cargo run --release -p tidemill-storage --example throughput [folder] [MiB]`.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "an example")]

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use tidemill_runtime::io::{Disk, RealDisk};
use tidemill_storage::{AckSink, AddKind, AddOutcome, AddRequest, Driver, Engine, EngineConfig, FinishBoot};
use tidemill_types::{ClusterId, Entry, EntryId, Incarnation, LedgerId};
use uuid::Uuid;

/// Entries per call, and calls that are under way: as many as eight brokers would have.
const BATCH: u64 = 64;
const MAX_IN_FLIGHT: u64 = 16 << 20;

#[derive(Default)]
struct Counting {
    done: AtomicU64,
    failed: AtomicU64,
}

impl AckSink for Counting {
    fn acked(&self, acks: Vec<(u64, AddOutcome)>) {
        for (_, outcome) in acks {
            self.failed.fetch_add(u64::from(outcome != AddOutcome::Ok), Ordering::Relaxed);
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn mb_per_s(bytes: u64, since: Instant) -> f64 {
    bytes as f64 / 1e6 / since.elapsed().as_secs_f64()
}

fn plain(dir: &Path, total: u64, piece: usize) -> f64 {
    let path = dir.join("plain");
    let file = RealDisk.create(&path, total).expect("create");
    let bytes = vec![0x5a; piece];
    let start = Instant::now();
    let mut at = 0;
    while at + piece as u64 <= total {
        file.write_at(&bytes, at).expect("write");
        file.sync_data().expect("sync");
        at += piece as u64;
    }
    let rate = mb_per_s(at, start);
    RealDisk.remove(&path).expect("remove");
    rate
}

fn engine(dir: &Path, total: u64, len: usize) {
    let dir = dir.join(format!("lane-{len}"));
    let mut config = EngineConfig::new(vec![dir.clone()]);
    config.driver = Driver::Threads;
    let mut scanned = Engine::open_scan(Arc::new(RealDisk), config).expect("scan");
    scanned.write_pending(ClusterId(Uuid::from_u128(1)), Incarnation(1)).expect("pending");
    let engine = scanned.finish(FinishBoot { limbo: false, mark: Some(LedgerId(0)) }).expect("finish");
    // Encoded before the clock runs: that is the writer's work.
    let count = total / len as u64;
    let body = Bytes::from(vec![0x5a; len]);
    let entries: Vec<Bytes> = (0..count)
        .map(|n| {
            let (ledger, id) = (1 + n % 100, i64::try_from(n / 100).expect("fits"));
            let e = Entry::encode(
                LedgerId(ledger),
                EntryId(id),
                EntryId(id - 1),
                0,
                b"",
                std::slice::from_ref(&body),
            );
            e.expect("entry").bytes().clone()
        })
        .collect();
    let counting = Arc::new(Counting::default());
    let sink: Arc<dyn AckSink> = Arc::clone(&counting) as _;
    let in_flight = (MAX_IN_FLIGHT / len as u64).max(4);
    let start = Instant::now();
    let mut sent = 0;
    let mut entries = entries.into_iter();
    loop {
        let batch: Vec<AddRequest> = entries
            .by_ref()
            .take(usize::try_from(BATCH.min(in_flight)).expect("fits"))
            .map(|entry| AddRequest { request: 0, entry, kind: AddKind::Normal })
            .collect();
        if batch.is_empty() {
            break;
        }
        sent += batch.len() as u64;
        engine.add_batch(batch, &sink);
        while sent - counting.done.load(Ordering::Relaxed) > in_flight {
            std::thread::yield_now();
        }
    }
    while counting.done.load(Ordering::Relaxed) < sent {
        std::thread::yield_now();
    }
    let rate = mb_per_s(sent * len as u64, start);
    let s = engine.stats();
    engine.shutdown();
    assert_eq!(counting.failed.load(Ordering::Relaxed), 0, "every add is acknowledged");
    println!(
        "entries of {len:>7} B: {rate:>7.0} MB/s, {} groups, {:.1} entries a group, write amplification {:.3}, mean sync {} us",
        s.groups,
        ratio(s.entries, s.groups),
        ratio(s.bytes_written, s.payload_bytes),
        s.sync.sum_us / s.sync.count.max(1),
    );
    std::fs::remove_dir_all(dir).expect("remove");
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| "/var/tmp/tidemill-throughput".to_owned());
    let mib: u64 = args.next().map_or(512, |m| m.parse().expect("a number of MiB"));
    let dir = Path::new(&dir);
    std::fs::create_dir_all(dir).expect("folder");
    let total = mib << 20;
    println!("plain write + fdatasync, 1 MiB: {:>7.0} MB/s", plain(dir, total, 1 << 20));
    for len in [1 << 10, 16 << 10, 256 << 10, 1 << 20] {
        engine(dir, total, len);
    }
    println!("plain write + fdatasync, 1 MiB: {:>7.0} MB/s", plain(dir, total, 1 << 20));
}
