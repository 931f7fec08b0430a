//! Declared topics, claims, tombstones, the operator epoch, checks of members.

use std::collections::{HashMap, HashSet};

use tidemill_bookie::BookieHandle;
use tidemill_proto::v1::{
    self, DeletePolicy, DeletionDone, TopicDone, topic_event::Event, topic_result::Outcome,
};
use tidemill_types::ErrorCode;
use tonic::{Request, Status, metadata::MetadataValue};

use crate::harness::{Broker, Cluster, code, eventually, field, values, within};

pub(crate) fn claim(n: u32) -> v1::TopicClaim {
    v1::TopicClaim { uid: format!("uid-{n}"), owner: format!("Topic default/t{n}") }
}

fn wish(name: &str, partitions: u32, uid: u32) -> v1::TopicWish {
    v1::TopicWish { name: name.to_owned(), partitions, claim: Some(claim(uid)), ..v1::TopicWish::default() }
}

async fn apply(b: &Broker, topics: Vec<v1::TopicWish>) -> Result<Vec<v1::TopicResult>, Status> {
    let request = v1::ApplyTopicsRequest { topics, dry_run: false, wait_ms: 20_000 };
    Ok(b.control().apply_topics(request).await?.into_inner().results)
}

async fn one(b: &Broker, wish: v1::TopicWish) -> v1::TopicResult {
    apply(b, vec![wish]).await.unwrap().remove(0)
}

fn done(r: &v1::TopicResult) -> TopicDone {
    assert!(matches!(r.outcome, Some(Outcome::Topic(_))), "{r:?}");
    r.done()
}

fn refused(r: &v1::TopicResult) -> &str {
    match &r.outcome {
        Some(Outcome::Refused(e)) => &e.code,
        _ => panic!("{r:?}"),
    }
}

async fn delete(b: &Broker, name: &str, uid: u32, policy: DeletePolicy) -> v1::DeletionResult {
    let deletion = v1::TopicDeletion {
        name: name.to_owned(),
        claim_uid: claim(uid).uid,
        purge_after_ms: 3_600_000,
        policy: policy.into(),
    };
    let request = v1::DeleteTopicsRequest { topics: vec![deletion], dry_run: false };
    b.control().delete_topics(request).await.unwrap().into_inner().results.remove(0)
}

fn under<T>(epoch: u64, body: T) -> Request<T> {
    let mut r = Request::new(body);
    r.metadata_mut().insert("tidemill-operator-epoch", MetadataValue::from(epoch));
    r
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_as_wished_and_its_tombstone_gives_its_records_back() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    let made = one(&b, wish("orders", 2, 1)).await;
    assert_eq!(done(&made), TopicDone::Created);
    let Some(Outcome::Topic(t)) = made.outcome else { panic!() };
    assert_eq!((t.partitions_without_owner, t.config["copies"].as_str()), (0, "3"));
    let sent = values("v", 50);
    b.produce("orders", 0, &sent).await.unwrap();
    assert_eq!(done(&one(&b, wish("orders", 2, 1)).await), TopicDone::Unchanged);

    // Another object wants it: told whom it lost to.
    let lost = one(&b, wish("orders", 2, 2)).await;
    assert_eq!((refused(&lost), lost.held_by.clone()), ("TOPIC_CLAIMED", Some(claim(1))));
    let other = delete(&b, "orders", 2, DeletePolicy::Tombstone).await;
    assert_eq!((other.done(), other.held_by), (DeletionDone::NotHolder, Some(claim(1))));
    let by_hand = b.admin().delete_topic(v1::DeleteTopicRequest { name: "orders".into() }).await.unwrap_err();
    assert_eq!(code(&by_hand), ErrorCode::TopicClaimed);

    // What differs is told, what shrinks is refused.
    let config = HashMap::from([("retention.bytes".to_owned(), "5000".to_owned())]);
    let grown = v1::TopicWish { partitions: 3, config, ..wish("orders", 3, 1) };
    let dry = v1::ApplyTopicsRequest { topics: vec![grown.clone()], dry_run: true, wait_ms: 0 };
    let dry = b.control().apply_topics(dry).await.unwrap().into_inner().results.remove(0);
    assert_eq!(done(&dry), TopicDone::Changed);
    let differences = ["partitions: 2 -> 3", "config.retention.bytes: (none) -> 5000"];
    assert_eq!(dry.changes, differences);
    assert_eq!(one(&b, grown.clone()).await.changes, differences);
    assert_eq!(done(&one(&b, grown.clone()).await), TopicDone::Unchanged);
    let smaller = one(&b, wish("orders", 1, 1)).await;
    assert_eq!((refused(&smaller), smaller.field.as_str()), ("INVALID_ARGUMENT", "partitions"));
    assert!(smaller.allowed.contains("never shrinks"), "{smaller:?}");

    // Deleted: nobody writes or reads it, and all of it comes back.
    let gone = delete(&b, "orders", 1, DeletePolicy::Tombstone).await;
    assert_eq!(gone.done(), DeletionDone::Tombstoned);
    let tombstone = gone.topic.unwrap().tombstone.unwrap();
    assert_eq!(tombstone.purge_at_ms - tombstone.deleted_ms, 3_600_000);
    assert_eq!(delete(&b, "orders", 1, DeletePolicy::Tombstone).await.done(), DeletionDone::Already);
    let e = b.produce("orders", 0, &sent).await.unwrap_err();
    assert_eq!(code(&e), ErrorCode::TopicTombstoned);
    let read = b.fetch("orders", 0, 0, true, 0).await;
    assert_eq!(read.error.unwrap().code, "TOPIC_TOMBSTONED");
    let listed = b.metadata().describe(v1::DescribeRequest::default()).await.unwrap().into_inner();
    assert!(listed.topics.iter().all(|t| t.name != "orders"));
    let named = v1::DescribeRequest { topics: vec!["orders".into()] };
    assert!(b.metadata().describe(named).await.unwrap().into_inner().topics[0].deleted);
    let create = v1::CreateTopicRequest { name: "orders".into(), partitions: 1, ..Default::default() };
    assert_eq!(code(&b.admin().create_topic(create).await.unwrap_err()), ErrorCode::TopicTombstoned);
    let mut revert = grown;
    revert.claim.as_mut().unwrap().uid = "another-uid-after-the-revert".into();
    assert_eq!(done(&one(&b, revert).await), TopicDone::Undeleted);
    let back: Vec<String> = eventually("records", async || {
        let all = b.read_all("orders", 0).await;
        (!all.is_empty()).then(|| all.into_iter().map(|(_, v)| v).collect())
    })
    .await;
    assert_eq!(back, sent);
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_empty_topic_is_deleted_if_empty_and_a_purge_takes_the_ledgers() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    apply(&b, vec![wish("full", 2, 1), wish("empty", 2, 1)]).await.unwrap();
    b.produce("full", 1, &values("v", 3)).await.unwrap();
    let no = delete(&b, "full", 1, DeletePolicy::IfEmpty).await;
    let why = no.refused.unwrap();
    assert_eq!((no.done, why.code.as_str()), (DeletionDone::Refused.into(), "TOPIC_NOT_EMPTY"));
    assert!(why.message.contains("3 in partition 1"), "{}", why.message);
    assert_eq!(b.read_all("full", 1).await.len(), 3, "it is untouched");
    assert_eq!(delete(&b, "empty", 1, DeletePolicy::IfEmpty).await.done(), DeletionDone::Tombstoned);
    assert_eq!(delete(&b, "nothing", 1, DeletePolicy::IfEmpty).await.done(), DeletionDone::Absent);

    let purge = |name: &str| v1::PurgeTopicRequest { name: name.to_owned() };
    let live = b.control().purge_topic(purge("full")).await.unwrap_err();
    assert_eq!(code(&live), ErrorCode::Conflict, "only a tombstone");
    delete(&b, "full", 1, DeletePolicy::Tombstone).await;
    let ledgers = async || {
        let r = v1::ListLedgersRequest::default();
        b.admin().list_ledgers(r).await.unwrap().into_inner().ledgers.len()
    };
    assert!(ledgers().await > 0);
    b.control().purge_topic(purge("full")).await.unwrap();
    assert_eq!(ledgers().await, 0, "for bookies they are gone");
    let gone = b.control().purge_topic(purge("full")).await.unwrap_err();
    assert_eq!(code(&gone), ErrorCode::UnknownTopic);
    assert_eq!(done(&one(&b, wish("full", 1, 2)).await), TopicDone::Created, "the name is free");
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_operator_can_do_nothing() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    let acquire = |holder: &str| v1::AcquireOperatorEpochRequest { holder: holder.to_owned() };
    let first = b.control().acquire_operator_epoch(acquire("a")).await.unwrap().into_inner().epoch;
    let body = || v1::ApplyTopicsRequest { topics: vec![wish("t", 1, 1)], ..Default::default() };
    b.control().apply_topics(under(first, body())).await.unwrap();
    let second = b.control().acquire_operator_epoch(acquire("b")).await.unwrap().into_inner().epoch;
    assert_eq!(second, first + 1);
    let stale = |r: Result<(), Status>| {
        let e = r.unwrap_err();
        assert_eq!(code(&e), ErrorCode::StaleOperatorEpoch, "{e}");
        assert!(e.message().contains("acquired by b"), "{}", e.message());
    };
    let mut control = b.control();
    stale(control.apply_topics(under(first, body())).await.map(drop));
    let deletion = v1::TopicDeletion { name: "t".into(), claim_uid: claim(1).uid, ..Default::default() };
    let body = v1::DeleteTopicsRequest { topics: vec![deletion], dry_run: false };
    stale(control.delete_topics(under(first, body)).await.map(drop));
    let release = v1::ClaimRelease { name: "t".into(), claim_uid: claim(1).uid };
    let body = v1::ReleaseClaimsRequest { claims: vec![release] };
    stale(control.release_claims(under(first, body)).await.map(drop));
    let body = v1::ChangeQuorumRequest { change: Some(v1::change_quorum_request::Change::Remove(1)) };
    stale(control.change_quorum(under(first, body)).await.map(drop));
    stale(control.raise_feature_level(under(first, Default::default())).await.map(drop));
    stale(control.watch_topics(under(first, Default::default())).await.map(drop));
    let bookie = c.bookies[0].id().to_string();
    let body = v1::AnnounceRestartRequest { member: bookie, cancel: false };
    stale(control.announce_restart(under(first, body)).await.map(drop));
    // The other service checks it too.
    let body = v1::DeleteRecordsRequest { topic: "t".into(), partition: 0, before: -1 };
    stale(b.admin().delete_records(under(first, body)).await.map(drop));
    let body = v1::DescribePartitionRequest { topic: "t".into(), partition: 0 };
    stale(b.admin().describe_partition(under(first, body)).await.map(drop));
    let body = v1::CreateTopicRequest { name: "u".into(), partitions: 1, ..Default::default() };
    stale(b.admin().create_topic(under(first, body)).await.map(drop));
    let mut bad = Request::new(v1::GetOperatorEpochRequest {});
    bad.metadata_mut().insert("tidemill-operator-epoch", "x".parse().unwrap());
    assert_eq!(field(&control.get_operator_epoch(bad).await.unwrap_err()).0, "tidemill-operator-epoch");
    let now = control.get_operator_epoch(v1::GetOperatorEpochRequest {}).await.unwrap().into_inner();
    assert_eq!((now.epoch, now.holder.as_str()), (second, "b"));
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_topics_in_one_go_and_a_watch_that_hears_of_each() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    let all: Vec<v1::TopicWish> = (0..1_000).map(|i| wish(&format!("t{i}"), 1, i)).collect();
    let mut watch = b.control().watch_topics(v1::WatchTopicsRequest::default()).await.unwrap().into_inner();
    let mut next = async || {
        let event = within("an event", watch.message()).await.unwrap().unwrap();
        (event.event.unwrap(), event.revision)
    };
    assert!(matches!(next().await.0, Event::Reload(true)));
    let synced = loop {
        if let (Event::Synced(true), revision) = next().await {
            break revision;
        }
    };
    let results = apply(&b, all.clone()).await.unwrap();
    assert!(results.iter().all(|r| done(r) == TopicDone::Created));
    let waiting: u32 = results
        .iter()
        .map(|r| match &r.outcome {
            Some(Outcome::Topic(t)) => t.partitions_without_owner,
            _ => 1,
        })
        .sum();
    assert_eq!(waiting, 0, "every partition has an owner");
    let mut heard = HashSet::new();
    let mut at = synced;
    while heard.len() < 1_000 {
        let (event, revision) = next().await;
        if let Event::Changed(t) = event {
            assert!(t.claim.is_some());
            heard.insert(t.name);
        }
        assert!(revision >= at, "revisions never go back");
        at = revision;
    }
    // Once more: nothing happens, and the watch says nothing but where it stands.
    let again = apply(&b, all).await.unwrap();
    assert!(again.iter().all(|r| done(r) == TopicDone::Unchanged));
    loop {
        let (event, revision) = next().await;
        assert!(matches!(event, Event::KeepAlive(true)), "{event:?}");
        if revision > at {
            break;
        }
    }
    // From a revision: only what came after it.
    let from = v1::WatchTopicsRequest { from_revision: at };
    let mut later = b.control().watch_topics(from).await.unwrap().into_inner();
    delete(&b, "t7", 7, DeletePolicy::Tombstone).await;
    let changed = loop {
        let event = within("an event", later.message()).await.unwrap().unwrap().event.unwrap();
        match event {
            Event::Changed(t) => break t,
            Event::KeepAlive(true) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(changed.name, "t7");
    assert!(changed.tombstone.is_some());
    // All of them in pages.
    let (mut after, mut names) = (0, HashSet::new());
    loop {
        let page = v1::ListTopicsRequest { after, limit: 300, claimed_only: true, ..Default::default() };
        let page = b.control().list_topics(page).await.unwrap().into_inner();
        names.extend(page.topics.into_iter().map(|t| t.name));
        after = page.next_after;
        if after == 0 {
            break;
        }
    }
    assert_eq!(names.len(), 999, "a tombstone is claimed by nobody");
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_names_its_field() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    let topics = |topics: Vec<v1::TopicWish>| v1::ApplyTopicsRequest { topics, ..Default::default() };
    let status = async |r| b.control().apply_topics(r).await.unwrap_err();
    assert_eq!(field(&status(topics(vec![])).await).0, "topics");
    let many = (0..1_001).map(|i| wish(&format!("t{i}"), 1, 1)).collect();
    assert_eq!(field(&status(topics(many)).await), ("topics".into(), "1 to 1000".into()));
    assert_eq!(field(&status(topics(vec![wish("t", 1, 1), wish("t", 2, 1)])).await).1, "each name once");
    let long = v1::ApplyTopicsRequest { wait_ms: 30_001, ..topics(vec![wish("t", 1, 1)]) };
    assert_eq!(field(&status(long).await).0, "wait_ms");
    let config = |k: &str, v: &str| HashMap::from([(k.to_owned(), v.to_owned())]);
    let no_uid = v1::TopicClaim { uid: String::new(), owner: "o".into() };
    for (wish, code, field) in [
        (wish("a b", 1, 1), "INVALID_TOPIC_NAME", "topic"),
        (wish("__x", 1, 1), "INVALID_TOPIC_NAME", "name"),
        (wish("t", 0, 1), "INVALID_ARGUMENT", "partitions"),
        (
            v1::TopicWish { config: config("copies", "9"), ..wish("t", 1, 1) },
            "INVALID_ARGUMENT",
            "config.copies",
        ),
        (
            v1::TopicWish { config: config("colour", "9"), ..wish("t", 1, 1) },
            "UNKNOWN_CONFIG_KEY",
            "config.colour",
        ),
        (v1::TopicWish { adoption: 9, ..wish("t", 1, 1) }, "INVALID_ARGUMENT", "adoption"),
        (v1::TopicWish { claim: Some(no_uid), ..wish("t", 1, 1) }, "INVALID_ARGUMENT", "claim.uid"),
    ] {
        let r = one(&b, wish).await;
        assert_eq!((refused(&r), r.field.as_str()), (code, field));
        assert!(!r.allowed.is_empty());
    }
    let r = b.control().check_member(v1::CheckMemberRequest { member: "x".into(), action: 1 }).await;
    assert_eq!(field(&r.unwrap_err()).0, "member");
    let member = uuid::Uuid::nil().to_string();
    let r = b.control().check_member(v1::CheckMemberRequest { member: member.clone(), action: 0 }).await;
    assert_eq!(field(&r.unwrap_err()).0, "action");
    let r = b.control().announce_restart(v1::AnnounceRestartRequest { member, cancel: false }).await;
    assert_eq!(field(&r.unwrap_err()).0, "member");
    let r = b.control().change_quorum(v1::ChangeQuorumRequest::default()).await;
    assert_eq!(field(&r.unwrap_err()).0, "change");
    let r = b.control().raise_feature_level(v1::RaiseFeatureLevelRequest { level: 99 }).await;
    assert_eq!(code(&r.unwrap_err()), ErrorCode::FeatureLevelTooLow);
    b.stop().await;
    c.stop().await;
}

async fn reasons(b: &Broker, member: String, action: v1::MemberAction) -> Vec<String> {
    let r = v1::CheckMemberRequest { member, action: action.into() };
    let answer = b.control().check_member(r).await.unwrap().into_inner();
    assert_eq!(answer.safe, answer.reasons.is_empty());
    answer.reasons.into_iter().map(|r| r.code).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whether_a_member_may_go_is_told_with_reasons() {
    let mut c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    b.produce("t", 0, &values("v", 3)).await.unwrap();
    let (restart, remove) = (v1::MemberAction::Restart, v1::MemberAction::Remove);
    let id = |b: &BookieHandle| b.id().to_string();
    let (first, last) = (id(&c.bookies[0]), id(&c.bookies[2]));
    eventually("a safe restart", async || reasons(&b, first.clone(), restart).await.is_empty().then_some(()))
        .await;
    assert_eq!(reasons(&b, first.clone(), remove).await, ["NOT_RETIRED", "STILL_NAMED"]);
    let broker = tidemill_broker::member_id(c.client.cluster().unwrap(), "broker-0").to_string();
    assert!(reasons(&b, broker.clone(), restart).await.is_empty(), "nobody else could take over");
    assert_eq!(reasons(&b, broker, remove).await, ["LAST_OF_ROLE", "OWNS_PARTITIONS"]);
    let q = b.control().quorum_status(v1::QuorumStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((q.members.len(), q.reachable_voters, q.majority), (1, 1, 1));
    assert_eq!((q.leader, q.members[0].feature_level > 1), (q.members[0].node, true));
    let meta = q.members[0].member.clone();
    assert!(reasons(&b, meta.clone(), restart).await.is_empty());
    assert_eq!(reasons(&b, meta, remove).await, ["NOT_RETIRED"]);
    let nobody = uuid::Uuid::new_v4().to_string();
    assert_eq!(reasons(&b, nobody, restart).await, ["UNKNOWN_MEMBER"]);

    // R28: announced, seen by all, ended by the next session.
    let announce = |cancel| v1::AnnounceRestartRequest { member: last.clone(), cancel };
    b.control().announce_restart(announce(false)).await.unwrap();
    let member = last.parse().unwrap();
    let restarting = async || {
        let (answer, _) = c.client.read(&tidemill_types::meta::Query::Members).await.unwrap();
        let tidemill_types::meta::Answer::Members(all) = answer else { panic!() };
        all.into_iter().find(|m| m.id == member).unwrap().restarting
    };
    assert!(restarting().await);
    b.control().announce_restart(announce(true)).await.unwrap();
    assert!(!restarting().await);

    let gone = c.bookies.pop().unwrap();
    gone.stop().await;
    let why = reasons(&b, first, restart).await;
    assert!(
        why.contains(&"MEMBER_DOWN".to_owned()) && why.contains(&"UNDER_REPLICATED".to_owned()),
        "{why:?}"
    );
    let level = b.control().get_feature_level(v1::GetFeatureLevelRequest {}).await.unwrap().into_inner();
    assert_eq!(level.level, level.highest);
    b.stop().await;
    c.stop().await;
}
