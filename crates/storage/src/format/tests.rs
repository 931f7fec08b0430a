//! Golden bytes, and bytes that nobody wrote.

use proptest::prelude::*;
use tidemill_types::{EntryId, LedgerId, MemberId};
use uuid::Uuid;

use super::{
    BLOCK_LEN, control::Control, cookie::Cookie, footer::Footer, group::GroupBuilder, group::GroupHeader,
    header::SegmentHeader, index, record, states::States,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn uuid(n: u8) -> Uuid {
    Uuid::from_bytes([n; 16])
}

#[test]
fn golden_segment_header() {
    let h = SegmentHeader {
        lane: MemberId(uuid(0xaa)),
        uuid: uuid(0xbb),
        number: 7,
        rewritten: false,
        first_group: 300,
    };
    let bytes = h.encode();
    assert_eq!(bytes.len(), BLOCK_LEN);
    let expected = format!(
        "544d53470001{}{}{}{}",
        "0100",
        "aa".repeat(16),
        "bb".repeat(16),
        "0000000700000000000000000000012c"
    );
    assert_eq!(hex(&bytes[..56]), expected);
    assert_eq!(SegmentHeader::decode(&bytes), Some(h));
}

#[test]
fn golden_group() {
    let mut b = GroupBuilder::default();
    b.clear();
    assert_eq!(b.push(|o| record::put_fence(o, LedgerId(5))), 56);
    assert_eq!(b.push(|o| record::put_lac(o, LedgerId(6), EntryId(-1))), 72);
    assert_eq!(b.push(|o| record::put_collect(o, LedgerId(7), 9)), 96);
    let bytes = b.finish(uuid(0xbb), 300, false).concat();
    assert_eq!(bytes.len(), BLOCK_LEN);
    let head = format!("544d475201000000{}{}", "bb".repeat(16), "000000000000012c0000003c0000000300000000");
    assert_eq!(hex(&bytes[..44]), head);
    let records = "03000000000000080000000000000005\
                   04000000000000100000000000000006ffffffffffffffff\
                   050000000000000c000000000000000700000009";
    assert_eq!(hex(&bytes[48..108]), records);
    assert!(bytes[108..].iter().all(|b| *b == 0));
    let h = GroupHeader::parse(&bytes).unwrap();
    assert!(h.check(&bytes));
    for bit in (0..108 * 8).step_by(3) {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(GroupHeader::parse(&bad).is_none_or(|h| !h.check(&bad)), "{bit}");
    }
}

/// Whether entries are copied or referred to, the bytes of the group are the same.
#[test]
fn large_entries_are_written_from_where_they_lie() {
    let entries =
        [10_usize, 5_000, 4_096, 20, 4_095].map(|n| bytes::Bytes::from(vec![n.to_le_bytes()[0]; n]));
    let (mut shared, mut copied) = (GroupBuilder::default(), GroupBuilder::default());
    shared.clear();
    copied.clear();
    for e in &entries {
        let at = shared.push_entry(record::ADD, e);
        assert_eq!(at, copied.push(|b| record::put_entry(b, record::ADD, e)));
        assert_eq!(shared.len(), copied.len());
    }
    let parts = shared.finish(uuid(1), 7, false);
    assert!(parts.iter().any(|p| p.as_ptr() == entries[1].as_ptr()));
    assert_eq!(parts.len(), 5);
    assert_eq!(parts.concat(), copied.finish(uuid(1), 7, false).concat());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), n in any::<u32>()) {
        let _ = Cookie::decode(&bytes);
        let _ = Control::decode(&bytes);
        let _ = SegmentHeader::decode(&bytes);
        let _ = Footer::decode(&bytes, uuid(1), n, u64::from(n));
        let _ = GroupHeader::parse(&bytes).map(|h| h.check(&bytes));
        let _ = record::parse(&bytes, n as usize % 300);
        let _ = States::decode(&bytes, n % 100, n);
        let _ = index::decode_runs(&bytes, n);
        let _ = index::check_page(uuid(1), n, &bytes);
    }
}
