use proptest::prelude::*;

use super::*;

fn data() -> Envelope {
    Envelope {
        kind: Kind::Data,
        compaction: Compaction::None,
        count: 3,
        base_offset: Offset(0x0102_0304),
        append_time_ms: 1_700_000_000_000,
        max_timestamp_ms: 17,
        max_timestamp_so_far_ms: 18,
        state_entry: EntryId(0),
        hashes: Bytes::new(),
    }
}

#[test]
fn golden_bytes() {
    let hex: String = data().encode().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(
        hex,
        "0101000000000003000000000102030400000\
         18bcfe568000000000000000011000000000000\
         0012000000000000000000000000"
            .replace(' ', "")
    );
    assert_eq!(data().encode().len(), ENVELOPE_LEN);
}

#[test]
fn refusals_name_the_field() {
    let with = |at: usize, value: u8| {
        let mut b = data().encode().to_vec();
        b[at] = value;
        Envelope::decode(&b.into())
    };
    assert_eq!(with(0, 2), Err(EnvelopeError::Version(2)));
    assert_eq!(with(1, 9), Err(EnvelopeError::Kind(9)));
    assert_eq!(with(3, 2), Err(EnvelopeError::Field { field: "flags", value: 2 }));
    assert_eq!(with(2, 1), Err(EnvelopeError::Field { field: "flags", value: 256 }));
    assert_eq!(with(3, 1).unwrap().compaction, Compaction::Rest);
    assert_eq!(with(3, 3).unwrap().compaction, Compaction::Clean);
    assert_eq!(with(7, 0), Err(EnvelopeError::Field { field: "record count", value: 0 }));
    assert_eq!(with(1, 3), Err(EnvelopeError::Field { field: "record count", value: 3 }));
    assert!(matches!(with(8, 0x80), Err(EnvelopeError::Field { field: "base offset", .. })));
    assert!(matches!(with(16, 0x80), Err(EnvelopeError::Field { field: "append time", .. })));
    assert!(matches!(with(24, 0x80), Err(EnvelopeError::Field { field: "max timestamp", .. })));
    assert_eq!(with(39, 16), Err(EnvelopeError::Field { field: "max timestamp so far", value: 16 }));
    assert!(matches!(with(40, 0x80), Err(EnvelopeError::Field { field: "state entry", .. })));
    assert!(matches!(with(48, 0xff), Err(EnvelopeError::Field { field: "hashes", .. })));
    assert_eq!(with(51, 1), Err(EnvelopeError::Truncated { have: 52, need: 53 }));
    let long = [data().encode().as_ref(), b"x"].concat();
    assert_eq!(Envelope::decode(&long.into()), Err(EnvelopeError::Trailing(1)));
}

fn envelopes() -> impl Strategy<Value = Envelope> {
    let kind = prop_oneof![Just(Kind::Data), Just(Kind::State), Just(Kind::Barrier), Just(Kind::Index)];
    let compaction = prop_oneof![Just(Compaction::None), Just(Compaction::Rest), Just(Compaction::Clean)];
    (
        (kind, compaction),
        1..=MAX_RECORDS,
        0..=i64::MAX / 2,
        0..=i64::MAX,
        -1..=i64::MAX,
        -1..=i64::MAX,
        -1..=i64::MAX,
        proptest::collection::vec(any::<u8>(), 0..64),
    )
        .prop_map(|((kind, compaction), count, base, time, a, b, state, hashes)| {
            let is_data = kind == Kind::Data;
            let own = if is_data { a.min(b) } else { -1 };
            Envelope {
                kind,
                compaction,
                count: if is_data { count } else { 0 },
                base_offset: Offset(base),
                append_time_ms: time,
                max_timestamp_ms: own,
                max_timestamp_so_far_ms: a.max(b),
                state_entry: EntryId(state),
                hashes: hashes.into(),
            }
        })
}

proptest! {
    #[test]
    fn round_trip(e in envelopes()) {
        prop_assert_eq!(Envelope::decode(&e.encode()), Ok(e));
    }

    #[test]
    fn cut_off_bytes_are_refused(e in envelopes(), cut in 1usize..52) {
        let b = e.encode();
        prop_assert!(Envelope::decode(&b.slice(..b.len() - cut)).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(b in proptest::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(e) = Envelope::decode(&b.clone().into()) {
            prop_assert_eq!(e.encode(), b);
        }
    }
}
