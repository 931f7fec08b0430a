//! A member of a group: joins, heartbeats, what it is given and what it gives up, and what it does when it is not wanted.

use std::time::{Duration, Instant};

use tidemill_types::ErrorCode;

use super::{Cluster, groups::Group};
use crate::{CommitMode, GroupConsumer, GroupConsumerConfig, GroupEvent, TopicPartition};

const LIMIT: Duration = Duration::from_secs(20);

async fn cluster(partitions: usize) -> Cluster {
    let cluster = Cluster::start(2, partitions, 1).await;
    with(&cluster, |g| {
        g.session_ms = 60_000;
        g.give(&[0, 1], &[]);
    });
    cluster
}

fn with<T>(cluster: &Cluster, f: impl FnOnce(&mut Group) -> T) -> T {
    f(&mut cluster.groups.group.lock())
}

fn config() -> GroupConsumerConfig {
    GroupConsumerConfig { commit: CommitMode::Manual, ..GroupConsumerConfig::new("g", ["t"]) }
}

fn parts(of: &[u32]) -> Vec<TopicPartition> {
    of.iter().map(|p| TopicPartition { topic: "t".into(), partition: *p }).collect()
}

/// Polls until `done`; the events so far that are not records.
async fn poll_until(
    c: &mut GroupConsumer,
    what: &str,
    mut done: impl FnMut(&GroupConsumer, &[GroupEvent]) -> bool,
) -> Vec<GroupEvent> {
    let end = Instant::now() + LIMIT;
    let mut all = Vec::new();
    while !done(c, &all) {
        assert!(Instant::now() < end, "{what}: {all:?}, {:?}", c.assignment());
        all.extend(c.poll(Duration::from_millis(5)).await.unwrap());
    }
    all
}

fn has(events: &[GroupEvent], is: impl Fn(&GroupEvent) -> Option<Vec<TopicPartition>>, of: &[u32]) -> bool {
    events.iter().filter_map(is).flatten().collect::<Vec<_>>() == parts(of)
}

fn assigned(e: &GroupEvent) -> Option<Vec<TopicPartition>> {
    if let GroupEvent::Assigned(p) = e { Some(p.clone()) } else { None }
}

fn revoking(e: &GroupEvent) -> Option<Vec<TopicPartition>> {
    if let GroupEvent::Revoking(p) = e { Some(p.clone()) } else { None }
}

fn lost(e: &GroupEvent) -> Option<Vec<TopicPartition>> {
    if let GroupEvent::Lost(p) = e { Some(p.clone()) } else { None }
}

/// Waits until the coordinator has heard something.
async fn heard(cluster: &Cluster, what: &str, is: impl Fn(&Group) -> bool) {
    let end = Instant::now() + LIMIT;
    while !with(cluster, |g| is(g)) {
        assert!(
            Instant::now() < end,
            "{what}: {} joins, {:?}",
            with(cluster, |g| g.joins.len()),
            with(cluster, |g| g.beats.last().cloned())
        );
        let news = cluster.groups.heard.notified();
        drop(tokio::time::timeout(Duration::from_millis(10), news).await);
    }
}

#[tokio::test]
async fn a_member_takes_what_it_is_given_and_tells_what_it_has() {
    let cluster = cluster(3).await;
    let mut c = cluster.client().await.group_consumer(config()).await.unwrap();
    let events = poll_until(&mut c, "assigned", |c, _| c.assignment() == parts(&[0, 1])).await;
    assert!(has(&events, assigned, &[0, 1]), "{events:?}");
    let owned = |g: &Group| g.beats.last().and_then(|b| Some(b.owned.as_ref()?.partitions.len()));
    heard(&cluster, "two are told", |g| owned(g) == Some(2)).await;
    let join = with(&cluster, |g| g.joins[0].clone());
    assert!(join.member == c.member_id() && join.incarnation != 0 && join.attempt == 1, "{join:?}");
    assert_eq!(join.subscription.unwrap().topics, ["t"]);
    c.leave().await;
    assert_eq!(with(&cluster, |g| g.left.len()), 1);
}

#[tokio::test]
async fn a_partition_is_given_up_only_after_the_caller_heard_of_it() {
    let cluster = cluster(2).await;
    let mut c = cluster.client().await.group_consumer(config()).await.unwrap();
    poll_until(&mut c, "assigned", |c, _| c.assignment() == parts(&[0, 1])).await;
    heard(&cluster, "both are told", |g| {
        g.beats.last().is_some_and(|b| b.owned.as_ref().is_some_and(|o| o.partitions.len() == 2))
    })
    .await;
    with(&cluster, |g| g.give(&[0], &[1]));
    let events = poll_until(&mut c, "revoking", |_, e| e.iter().any(|e| revoking(e).is_some())).await;
    assert!(has(&events, revoking, &[1]), "{events:?}");
    // The caller has not polled since: it may still be at work on it, and may commit it.
    let beats = with(&cluster, |g| g.beats.len());
    heard(&cluster, "more heartbeats", |g| g.beats.len() > beats + 3).await;
    assert_eq!(with(&cluster, |g| g.revoking.clone()), [1], "it was given up behind the caller's back");
    c.commit_offsets([(parts(&[1])[0].clone(), 0)]).await.unwrap();
    // Its next poll gives it up.
    c.poll(Duration::from_millis(5)).await.unwrap();
    assert_eq!(c.assignment(), parts(&[0]));
    heard(&cluster, "given up", |g| g.revoking.is_empty()).await;
    c.leave().await;
}

#[tokio::test]
async fn a_member_that_was_removed_loses_everything_and_joins_again() {
    let cluster = cluster(2).await;
    let mut c = cluster.client().await.group_consumer(config()).await.unwrap();
    poll_until(&mut c, "assigned", |c, _| c.assignment() == parts(&[0, 1])).await;
    for code in [ErrorCode::UnknownMember, ErrorCode::FencedMember] {
        let joins = with(&cluster, |g| {
            g.refuse.push_back(code);
            g.joins.len()
        });
        let events = poll_until(&mut c, "lost", |_, e| e.iter().any(|e| lost(e).is_some())).await;
        assert!(has(&events, lost, &[0, 1]), "{events:?}");
        poll_until(&mut c, "assigned again", |c, _| c.assignment() == parts(&[0, 1])).await;
        let attempts = with(&cluster, |g| g.joins.iter().map(|j| j.attempt).collect::<Vec<_>>());
        assert_eq!(attempts.len(), joins + 1);
        assert!(attempts.windows(2).all(|a| a[0] < a[1]), "each join is another attempt: {attempts:?}");
    }
    c.leave().await;
}

#[tokio::test]
async fn a_coordinator_that_moves_is_followed_without_a_loss() {
    let cluster = cluster(2).await;
    let mut c = cluster.client().await.group_consumer(config()).await.unwrap();
    poll_until(&mut c, "assigned", |c, _| c.assignment() == parts(&[0, 1])).await;
    let beats = with(&cluster, |g| {
        g.coordinator = 1;
        g.refuse.push_back(ErrorCode::NotOwner);
        g.beats.len()
    });
    let mut events = Vec::new();
    let end = Instant::now() + LIMIT;
    while with(&cluster, |g| g.beats.len()) < beats + 5 {
        assert!(Instant::now() < end, "{events:?}");
        events.extend(c.poll(Duration::from_millis(5)).await.unwrap());
    }
    assert!(events.iter().all(|e| lost(e).is_none() && revoking(e).is_none()), "{events:?}");
    assert_eq!(with(&cluster, |g| g.joins.len()), 1, "it is the same member");
    c.leave().await;
}

#[tokio::test]
async fn a_member_that_is_not_heard_for_its_session_counts_as_removed() {
    let cluster = cluster(2).await;
    with(&cluster, |g| g.session_ms = 300);
    let mut c = cluster.client().await.group_consumer(config()).await.unwrap();
    poll_until(&mut c, "assigned", |c, _| c.assignment() == parts(&[0, 1])).await;
    with(&cluster, |g| g.silent = true);
    let events = poll_until(&mut c, "lost", |_, e| e.iter().any(|e| lost(e).is_some())).await;
    assert!(has(&events, lost, &[0, 1]), "{events:?}");
    // What it read last may be somebody else's by now.
    let e = c.commit_offsets([(parts(&[0])[0].clone(), 0)]).await.unwrap_err();
    assert_eq!(e.code, Some(ErrorCode::UnknownMember));
    with(&cluster, |g| g.silent = false);
    poll_until(&mut c, "assigned again", |c, _| c.assignment() == parts(&[0, 1])).await;
    c.leave().await;
}

#[tokio::test]
async fn a_member_whose_caller_does_not_poll_leaves_and_comes_back() {
    let cluster = cluster(2).await;
    let config = GroupConsumerConfig { max_poll_interval: Duration::from_millis(200), ..config() };
    let mut c = cluster.client().await.group_consumer(config).await.unwrap();
    poll_until(&mut c, "assigned", |c, _| c.assignment() == parts(&[0, 1])).await;
    heard(&cluster, "a farewell", |g| g.left.len() == 1).await;
    let joins = with(&cluster, |g| g.joins.len());
    let events = poll_until(&mut c, "assigned again", |c, e| {
        e.iter().any(|e| lost(e).is_some()) && c.assignment() == parts(&[0, 1])
    })
    .await;
    assert!(has(&events, lost, &[0, 1]), "{events:?}");
    assert_eq!(with(&cluster, |g| g.joins.len()), joins + 1);
    c.leave().await;
}

#[tokio::test]
async fn what_can_never_succeed_is_told_and_ends_the_member() {
    let cluster = cluster(2).await;
    with(&cluster, |g| g.refuse.push_back(ErrorCode::Unsupported));
    let e = cluster.client().await.group_consumer(config()).await.unwrap_err();
    assert_eq!(e.code, Some(ErrorCode::Unsupported));
    // And a commit that comes too late says so.
    let mut c = cluster.client().await.group_consumer(config()).await.unwrap();
    poll_until(&mut c, "assigned", |c, _| c.assignment() == parts(&[0, 1])).await;
    with(&cluster, |g| g.fenced = true);
    let e = c.commit_offsets([(parts(&[0])[0].clone(), 0)]).await.unwrap_err();
    assert_eq!(e.code, Some(ErrorCode::FencedMember));
    c.leave().await;
}
