//! Golden bytes of the offsets topic: what was written once is read for ever.

use tidemill_group::{
    Committed, Declaration, Member, ResetDone, Subscription,
    log::{GroupValue, Key, Record, RecordError, Value, decode, encode},
};
use tidemill_types::{Claim, TopicId};

use crate::harness::*;

fn samples() -> Vec<(&'static str, Record, &'static str, Option<&'static str>)> {
    let group_value = GroupValue { epoch: 300, empty_since_ms: Some(5), topics: [(TopicId(1), 8)].into() };
    let member = Member {
        instance: Some("i".into()),
        client: "c".into(),
        incarnation: 7,
        attempt: 2,
        subscription: Subscription { topics: [name("t")].into(), pattern: Some("a.*".into()) },
        session_ms: 45_000,
        rebalance_ms: 60_000,
        joined_epoch: 3,
        epoch: 4,
        revision: 5,
        target: [p(0)].into(),
        assigned: [(p(0), 4)].into(),
        revoking: [(p(1), 3)].into(),
        away: true,
    };
    let committed = Committed { offset: 1_000, epoch: 6, metadata: "m".into(), commit_ms: 1_700_000_000_000 };
    let declaration = Declaration {
        claim: Some(Claim { uid: "u".into(), owner: "o".into() }),
        topics: [name("t")].into(),
        resets: vec![ResetDone { id: "r".into(), to: "latest".into(), at_ms: 1_700_000_000_000 }],
    };
    let g = group();
    vec![
        (
            "group",
            Record { key: Key::Group(g.clone()), value: Some(Value::Group(group_value)) },
            "01000762696c6c696e67",
            Some("0100ac02010a010108"),
        ),
        ("group gone", Record { key: Key::Group(g.clone()), value: None }, "01000762696c6c696e67", None),
        (
            "member",
            Record {
                key: Key::Member(g.clone(), "m-1".into()),
                value: Some(Value::Member(Box::new(member))),
            },
            "01010762696c6c696e67036d2d31",
            Some("01010101690163070201017401 03612e2ac8df02e0d40303040501010001010004010101 0301"),
        ),
        (
            "offset",
            Record { key: Key::Offset(g.clone(), p(3)), value: Some(Value::Offset(committed)) },
            "01020762696c6c696e670103",
            Some("0102d00f06016d80a0abfef962"),
        ),
        (
            "declared",
            Record { key: Key::Declared(g), value: Some(Value::Declared(declaration)) },
            "01030762696c6c696e67",
            Some("0103 01 0175 016f 01 0174 01 0172 06 6c6174657374 80a0abfef962"),
        ),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn golden_bytes() {
    for (what, record, key, value) in samples() {
        let (k, v) = encode(&record).unwrap();
        assert_eq!(hex(&k), key, "key of {what}");
        assert_eq!(v.as_deref().map(hex), value.map(|v| v.replace(' ', "")), "value of {what}");
        assert_eq!(decode(&k, v.as_deref()).unwrap(), record);
        for cut in 0..k.len() {
            assert!(decode(&k[..cut], v.as_deref()).is_err(), "{what} cut at {cut}");
        }
    }
}

#[test]
fn other_versions_and_mixed_kinds_are_refused() {
    let all = samples();
    let (group_key, _) = encode(&all[0].1).unwrap();
    let (_, offset) = encode(&all[3].1).unwrap();
    assert!(matches!(
        decode(&group_key, offset.as_deref()),
        Err(RecordError::Malformed { what: "value", .. })
    ));
    let mut other = group_key.clone();
    other[0] = 2;
    assert_eq!(decode(&other, None), Err(RecordError::Version { what: "key", version: 2 }));
    assert!(decode(&[1; 3_000], None).is_err());
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mut k in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..100),
        mut v in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..200),
    ) {
        (k[0], v[0]) = (1, 1);
        let _ = decode(&k, Some(&v));
    }
}
