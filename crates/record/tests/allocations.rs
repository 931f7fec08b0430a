//! What batches ask of the allocator: nothing per record. Counts do not depend on the clock or on the machine, so this is
//! what keeps the hot path as cheap as it is.

#![allow(clippy::unwrap_used, reason = "a test: a failure is a panic")]

use allocation_counter::measure;
use bytes::Bytes;
use tidemill_record::{BatchBuilder, Compression, Limits, batches, check};

/// Allocations of a batch of so many records, the builder warm.
fn of_a_batch(records: usize) -> (u64, Bytes) {
    let value = [7; 100];
    let mut builder = BatchBuilder::new(Limits { batch: 1 << 24, ..Limits::DEFAULT });
    let mut batch = |out: &mut Bytes| {
        builder.reserve(records * 120 + 100);
        for n in 0..records {
            builder.append(n as i64, None, Some(&value), &[]).unwrap();
        }
        *out = builder.finish(Compression::None, None).unwrap();
    };
    let mut out = Bytes::new();
    batch(&mut out);
    let counted = measure(|| batch(&mut out));
    (counted.count_total, out)
}

#[test]
fn building_costs_the_same_however_many_records() {
    let (few, _) = of_a_batch(2);
    let (many, _) = of_a_batch(5_000);
    assert_eq!(few, many);
    assert!(many <= 3, "{many} allocations per batch");
}

#[test]
fn a_broker_finds_and_checks_batches_without_an_allocation() {
    let (_, batch) = of_a_batch(5_000);
    let limits = Limits { batch: 1 << 24, ..Limits::DEFAULT };
    let counted = measure(|| {
        for b in batches(batch.clone()) {
            check(&b.unwrap().bytes, &limits).unwrap();
        }
    });
    assert_eq!(counted.count_total, 0);
}
