//! Reads.

use tidemill_types::meta::{Answer, Command, Query};
use tidemill_types::{LedgerId, LedgerRecord, TopicConfig, TopicId};

use crate::harness::*;

fn ledgers(c: &Cluster, query: &Query) -> Vec<u64> {
    match c.state.query(query) {
        Answer::Ledgers(v) => v.iter().map(|l: &LedgerRecord| l.id.0).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cluster_and_members() {
    let (c, _) = Cluster::with_open_ledger();
    match c.state.query(&Query::Cluster) {
        Answer::Cluster(i) => {
            assert_eq!((i.cluster, i.feature_level, i.next_ledger), (Some(CLUSTER), 2, LedgerId(2)));
            assert_eq!((i.revision.0, i.counts), (c.revision, (1, 2, 1)));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(c.state.query(&Query::Members), Answer::Members(m) if m.len() == 6));
}

#[test]
fn topics_by_name_id_and_page() {
    let mut c = Cluster::new();
    let s = c.session(11);
    for n in ["c", "b", "a"] {
        c.ok(s, Command::CreateTopic { name: name(n), partitions: 1, config: TopicConfig::default() });
    }
    let by_name = |n: &str| c.state.query(&Query::TopicByName(name(n)));
    assert!(matches!(by_name("b"), Answer::Topic(Some(t)) if t.id == TopicId(3)));
    assert_eq!(by_name("z"), Answer::Topic(None));
    assert!(
        matches!(c.state.query(&Query::Topic(TopicId(2))), Answer::Topic(Some(t)) if t.name == name("c"))
    );
    let page = |after: Option<u64>, limit| match c
        .state
        .query(&Query::Topics { after: after.map(TopicId), limit })
    {
        Answer::Topics(v) => v.iter().map(|t| t.id.0).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(page(None, 3), [1, 2, 3]);
    assert_eq!(page(Some(3), 3), [4]);
    assert_eq!(page(Some(1), 0), [2]);
    assert_eq!(page(None, u32::MAX), [1, 2, 3, 4]);
}

#[test]
fn partitions_with_their_ledgers() {
    let (mut c, l) = Cluster::with_open_ledger();
    let ahead = c.create(0);
    let view = |c: &Cluster| match c.state.query(&Query::Partition(p(0))) {
        Answer::Partition(Some(v)) => v,
        other => panic!("{other:?}"),
    };
    let v = view(&c);
    assert_eq!((v.ledgers.len(), v.ledgers[0].id, v.owner_live), (1, l, true));
    c.expire(11);
    assert!(!view(&c).owner_live && view(&c).partition.owner.is_some());
    assert_eq!(c.state.query(&Query::Partition(p(5))), Answer::Partition(None));
    assert!(matches!(c.state.query(&Query::Ledger(ahead)), Answer::Ledger(Some(_))));
    assert_eq!(c.state.query(&Query::Ledger(LedgerId(99))), Answer::Ledger(None));
}

#[test]
fn ledgers_in_pages_and_per_bookie() {
    let mut c = Cluster::new();
    c.acquire(11, 0);
    let (s, epoch) = c.owner(0);
    for bookies in [[1, 2, 3], [2, 3, 4], [1, 3, 4], [1, 2, 4]] {
        c.ok(s, create(p(0), epoch, &bookies));
    }
    let of = |n, after: Option<u64>, limit| {
        ledgers(&c, &Query::LedgersOf { bookie: member(n), after: after.map(LedgerId), limit })
    };
    assert_eq!(of(1, None, 10), [1, 3, 4]);
    assert_eq!(of(1, Some(1), 10), [3, 4]);
    assert_eq!(of(1, Some(2), 1), [3]);
    assert_eq!(of(4, Some(4), 10), [0u64; 0]);
    assert_eq!(of(9, None, 10), [0u64; 0]);
    assert_eq!(ledgers(&c, &Query::Ledgers { after: None, limit: 2 }), [1, 2]);
    assert_eq!(ledgers(&c, &Query::Ledgers { after: Some(LedgerId(2)), limit: 9 }), [3, 4]);
}

#[test]
fn the_view_is_what_a_watch_adds_up_to() {
    let (c, _) = Cluster::with_open_ledger();
    match c.state.query(&Query::View) {
        Answer::View(v) => {
            assert_eq!(v, c.state.view());
            assert_eq!((v.members.len(), v.topics.len(), v.partitions.len()), (6, 1, 2));
            assert_eq!((v.revision.0, v.cluster), (c.revision, Some(CLUSTER)));
        }
        other => panic!("{other:?}"),
    }
}
