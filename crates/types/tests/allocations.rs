//! An entry is encoded once and checked three times: how often memory is asked for.

#![allow(clippy::unwrap_used, reason = "a test: a failure is a panic")]

use allocation_counter::measure;
use bytes::Bytes;
use tidemill_types::{Entry, EntryId, LedgerId};

fn encode(body: &Bytes) -> Entry {
    let parts = [body.clone()];
    Entry::encode(LedgerId(1), EntryId(5), EntryId(4), 0, &[1; 60], &parts).unwrap()
}

#[test]
fn an_entry_costs_the_same_whatever_its_size() {
    for len in [10, 1 << 20] {
        let body = Bytes::from(vec![3; len]);
        let encoding = measure(|| drop(encode(&body)));
        assert!(encoding.count_total <= 3, "{} allocations", encoding.count_total);
        // One buffer: the body is copied once.
        assert!(encoding.bytes_total < len as u64 + 1_000, "{} bytes", encoding.bytes_total);
        let bytes = encode(&body).bytes().clone();
        let decoding = measure(|| drop(Entry::decode(bytes.clone()).unwrap()));
        assert_eq!(decoding.count_total, 0);
    }
}
