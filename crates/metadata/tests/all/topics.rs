//! `CreateTopic`, `AlterTopic`, `DeleteTopic`.

use tidemill_types::meta::{Answer, Change, Command, Query, Rejection, Reply};
use tidemill_types::{PartitionId, Replication, TopicConfig, TopicId, TopicRecord, Version};

use crate::harness::*;

fn create_topic(n: &str, partitions: u32) -> Command {
    Command::CreateTopic { name: name(n), partitions, config: TopicConfig::default() }
}

fn alter(version: Option<u64>, partitions: Option<u32>, config: Option<TopicConfig>) -> Command {
    Command::AlterTopic { topic: TopicId(1), version: version.map(Version), partitions, config }
}

fn topic(reply: Reply) -> TopicRecord {
    match reply {
        Reply::Topic(t) => t,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_topic_comes_with_its_partitions() {
    let mut c = Cluster::new();
    let s = c.session(11);
    c.lead(Command::Tick { wall_ms: 77, jump: true });
    let applied = c.send(s, create_topic("u", 3));
    let t = topic(applied.result.unwrap());
    assert_eq!((t.id, t.version, t.partitions, t.created_ms), (TopicId(2), Version(1), 3, 77));
    assert_eq!(applied.changes.len(), 4);
    assert!(matches!(applied.changes[0], Change::Topic(_)));
    assert!(matches!(&applied.changes[3], Change::Partition(r) if r.id.index == 2));
}

#[test]
fn creations_that_are_refused() {
    let mut c = Cluster::new();
    let s = c.session(11);
    assert!(matches!(c.no(s, create_topic("t", 1)), Rejection::Exists { .. }));
    for partitions in [0, 100_001] {
        assert_invalid(&c.no(s, create_topic("u", partitions)), "partitions");
    }
    let d = TopicConfig::default;
    let configs = [
        ("replication", TopicConfig { replication: Replication { copies: 2, ack_quorum: 3 }, ..d() }),
        ("replication", TopicConfig { replication: Replication { copies: 8, ack_quorum: 3 }, ..d() }),
        ("retention_ms", TopicConfig { retention_ms: Some(0), ..d() }),
        ("retention_bytes", TopicConfig { retention_bytes: Some(0), ..d() }),
        ("max_message_bytes", TopicConfig { max_message_bytes: Some(0), ..d() }),
        ("max_message_bytes", TopicConfig { max_message_bytes: Some((64 << 20) + 1), ..d() }),
        ("roll_bytes", TopicConfig { roll_bytes: Some(0), ..d() }),
        ("roll_ms", TopicConfig { roll_ms: Some(-1), ..d() }),
    ];
    for (field, config) in configs {
        assert_invalid(&c.no(s, alter(None, None, Some(config.clone()))), field);
        assert_invalid(&c.no(s, Command::CreateTopic { name: name("u"), partitions: 1, config }), field);
    }
}

#[test]
fn alter_grows_only() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let config = TopicConfig { retention_ms: Some(5), ..TopicConfig::default() };
    let t = topic(c.ok(s, alter(Some(1), Some(4), Some(config.clone()))));
    assert_eq!((t.version, t.partitions, &t.config), (Version(2), 4, &config));
    assert!(c.state.partition(p(3)).is_some());
    assert_eq!(c.no(s, alter(Some(1), Some(5), None)), Rejection::VersionMismatch { current: Version(2) });
    assert_invalid(&c.no(s, alter(None, Some(3), None)), "partitions");
    assert_invalid(&c.no(s, alter(None, Some(100_001), None)), "partitions");
    // The same once more is no change.
    let same = c.send(s, alter(None, Some(4), Some(config)));
    assert_eq!(topic(same.result.unwrap()).version, Version(2));
    assert!(same.changes.is_empty());
    let gone = Command::AlterTopic { topic: TopicId(9), version: None, partitions: None, config: None };
    assert!(matches!(c.no(s, gone), Rejection::NotFound { .. }));
}

#[test]
fn partitions_of_an_internal_topic_are_fixed() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let t = topic(c.ok(s, create_topic("__offsets", 64)));
    let grow = |n| Command::AlterTopic { topic: t.id, version: None, partitions: Some(n), config: None };
    assert_invalid(&c.no(s, grow(65)), "partitions");
    c.ok(s, grow(64));
}

#[test]
fn delete_takes_partitions_and_all_ledger_records() {
    let (mut c, linked) = Cluster::with_open_ledger();
    let ahead = c.create(0);
    let (s, epoch) = c.owner(0);
    let applied = c.send(s, Command::DeleteTopic { topic: TopicId(1) });
    let removed = |index| Change::PartitionRemoved(PartitionId { topic: TopicId(1), index });
    assert_eq!(applied.changes, [removed(0), removed(1), Change::TopicRemoved(TopicId(1))]);
    for l in [linked, ahead] {
        assert_eq!(c.state.query(&Query::Ledger(l)), Answer::Ledger(None));
    }
    assert_eq!(c.state.named_count(member(1)), 0);
    assert!(matches!(c.no(s, append(epoch, Some(linked), ahead, 0)), Rejection::NotFound { .. }));
    assert!(matches!(c.no(s, Command::DeleteTopic { topic: TopicId(1) }), Rejection::NotFound { .. }));
    // The name is free, the ids are not used again.
    let t = topic(c.ok(s, create_topic("t", 1)));
    assert_eq!(t.id, TopicId(2));
    c.lead(Command::Assign(vec![tidemill_types::meta::Assignment {
        partition: PartitionId { topic: t.id, index: 0 },
        broker: Some(member(11)),
    }]));
    let item = tidemill_types::meta::AcquireItem {
        partition: PartitionId { topic: t.id, index: 0 },
        seen: tidemill_types::Epoch(0),
    };
    c.ok(s, Command::Acquire(vec![item]));
    let new = c.ledger_of(s, create(item.partition, tidemill_types::Epoch(1), &[1, 2, 3]));
    assert!(new.id > ahead);
}
