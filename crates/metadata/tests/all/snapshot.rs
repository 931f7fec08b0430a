//! Snapshots: handle, pieces, damage.

use proptest::prelude::*;
use tidemill_metadata::{SNAPSHOT_PIECE_LEN, SnapshotError, State};
use tidemill_types::TopicConfig;
use tidemill_types::meta::{Adoption, Command, ControlAction, TopicWish};

use crate::harness::*;

#[test]
fn a_handle_stands_still() {
    let (mut c, l) = Cluster::with_open_ledger();
    let handle = c.state.snapshot();
    let before = handle.encode().unwrap();
    let revision = handle.revision();
    let (s, epoch) = c.owner(0);
    let close = c.closing(l, 3, 4);
    c.ok(s, Command::Close { close, epoch: Some(epoch) });
    c.expire(11);
    assert_eq!(handle.encode().unwrap(), before);
    assert_eq!(handle.revision(), revision);
    assert_ne!(c.state.snapshot().encode().unwrap(), before);
    let read = State::decode(&before).unwrap();
    assert_eq!(read.view(), handle.state().view());
    assert_eq!(read.snapshot().encode().unwrap(), before);
}

#[test]
fn kept_replies_survive() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let request = tidemill_types::meta::Request {
        session: s,
        request: tidemill_types::RequestId(1 << 40),
        command: Command::AllocateProducerIds { count: 9 },
    };
    let first = c.apply(&request).result;
    c.state = State::decode(&c.state.snapshot().encode().unwrap()).unwrap();
    assert_eq!(c.apply(&request).result, first);
}

#[test]
fn pieces_are_bounded_and_whole_in_order() {
    let mut c = Cluster::empty();
    c.lead(Command::Init { cluster: CLUSTER });
    let s = c.broker(11);
    let config = TopicConfig::default();
    let command = Command::CreateTopic { name: name("big"), partitions: 100_000, config };
    let request =
        tidemill_types::meta::Request { session: s, request: tidemill_types::RequestId(1), command };
    assert!(c.state.apply(tidemill_types::Revision(9), &request).result.is_ok());
    let pieces: Vec<_> = c.state.snapshot().pieces().map(Result::unwrap).collect();
    assert!(pieces.len() > 3);
    assert!(pieces.iter().all(|p| p.len() <= SNAPSHOT_PIECE_LEN + 8));
    let all = pieces.concat();
    assert_eq!(State::read_from(&all[..]).unwrap().snapshot().encode().unwrap(), all);
    // Two pieces in each other's place, one left out, one twice: each is sound in itself.
    for order in [&[0, 2, 1, 3][..], &[0, 2, 3], &[0, 1, 1, 2, 3]] {
        let mut turned: Vec<u8> = order.iter().flat_map(|i| pieces[*i].clone()).collect();
        turned.extend(pieces[4..].concat());
        assert!(State::decode(&turned).is_err());
    }
}

#[test]
fn foreign_bytes_are_refused() {
    let (c, _) = Cluster::with_open_ledger();
    let bytes = c.state.snapshot().encode().unwrap();
    assert!(matches!(State::decode(&[]), Err(SnapshotError::Io(_))));
    assert!(matches!(State::decode(&[7; 64]), Err(SnapshotError::Magic)));
    let mut more = bytes.clone();
    more.push(0);
    assert!(matches!(State::decode(&more), Err(SnapshotError::Malformed(_))));
    let relabelled = |version: u8| {
        let mut b = bytes.clone();
        b[8] = version;
        let crc = tidemill_types::entry::crc32c(&[&b[..16]]).to_le_bytes();
        b[16..20].copy_from_slice(&crc);
        State::decode(&b)
    };
    assert!(matches!(relabelled(4), Err(SnapshotError::Version { version: 4, .. })));
    assert!(relabelled(3).is_err(), "a version that its content does not need");
}

#[test]
fn what_only_the_third_version_has_survives() {
    let mut c = Cluster::controlled();
    assert_eq!(c.state.snapshot().encode().unwrap()[8], 2, "an older binary reads it");
    c.control(ControlAction::AcquireOperatorEpoch { holder: "o".into() });
    let wishes = (0..300).map(|n| TopicWish {
        name: name(&format!("t{n}")),
        partitions: 1,
        config: TopicConfig::default(),
        claim: Some(claim(n)),
        adoption: Adoption::Fail,
    });
    c.control(ControlAction::ApplyTopics(wishes.collect()));
    let bytes = c.state.snapshot().encode().unwrap();
    assert_eq!(bytes[8], 3);
    let read = State::decode(&bytes).unwrap();
    assert!(read.topic_controls().eq(c.state.topic_controls()));
    assert_eq!((read.topic_controls().count(), read.operator().epoch), (300, 1));
    assert_eq!(read.snapshot().encode().unwrap(), bytes);
}

proptest! {
    #[test]
    fn every_flipped_bit_and_every_cut_is_found(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let (c, _) = Cluster::with_open_ledger();
        let mut bytes = c.state.snapshot().encode().unwrap();
        let i = at.index(bytes.len());
        prop_assert!(State::decode(&bytes[..i]).is_err());
        bytes[i] ^= 1 << bit;
        prop_assert!(State::decode(&bytes).is_err());
    }
}
