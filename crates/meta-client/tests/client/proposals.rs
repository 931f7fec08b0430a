//! Proposals: one request id over all tries, and what each error means.

use std::sync::Arc;

use tidemill_meta_client::{MetaError, Session};
use tidemill_types::{
    TopicConfig, TopicName,
    meta::{Command, Rejection},
};

use crate::member::{Fault, broker, client, serve};

async fn session(addresses: &[String]) -> Session {
    client(addresses).open_session(broker(1), Arc::new(Default::default)).await.unwrap()
}

fn name(n: &str) -> TopicName {
    TopicName::new(n).unwrap()
}

#[tokio::test]
async fn a_retry_carries_the_same_request_and_is_executed_once() {
    let (member, addr) = serve().await;
    let session = session(&[addr.to_string()]).await;
    {
        let mut s = member.inner.lock().unwrap();
        s.proposals.clear();
        s.faults.extend([Fault::NotReady, Fault::LoseAnswer, Fault::LoseAnswer]);
    }
    let topic = session.create_topic(name("a"), 2, TopicConfig::default()).await.unwrap().unwrap();
    let s = member.inner.lock().unwrap();
    assert_eq!(s.proposals.len(), 4);
    assert!(s.proposals.iter().all(|p| *p == s.proposals[0]), "{:?}", s.proposals);
    assert_eq!(s.state.topics().collect::<Vec<_>>(), [&topic]);
}

#[tokio::test]
async fn only_a_command_that_was_never_sent_is_unavailable() {
    let (member, addr) = serve().await;
    let session = session(&[addr.to_string()]).await;
    let lost = std::iter::repeat_n(Fault::LoseAnswer, 1_000);
    member.inner.lock().unwrap().faults.extend(lost);
    let e = session.create_topic(name("a"), 1, TopicConfig::default()).await.unwrap_err();
    assert!(matches!(e, MetaError::OutcomeUnknown { .. }), "{e}");
    assert_eq!(member.inner.lock().unwrap().state.topics().count(), 1, "it was applied, once");
    let later = std::iter::repeat_n(Fault::NotReady, 1_000);
    {
        let mut s = member.inner.lock().unwrap();
        s.faults.clear();
        s.faults.extend(later);
    }
    let e = session.create_topic(name("b"), 1, TopicConfig::default()).await.unwrap_err();
    assert!(matches!(e, MetaError::Unavailable { .. }), "{e}");
    member.inner.lock().unwrap().faults.clear();
    let again = session.create_topic(name("a"), 1, TopicConfig::default()).await.unwrap();
    assert!(matches!(again, Err(Rejection::Exists { .. })), "a new call is a new command: {again:?}");
}

#[tokio::test]
async fn hints_are_followed_and_a_dead_member_is_passed_by() {
    let (_leader, leader_addr) = serve().await;
    let (follower, addr) = serve().await;
    let hints = std::iter::repeat_n(Fault::Hint(leader_addr.to_string()), 1_000);
    follower.inner.lock().unwrap().faults.extend(hints);
    // Nobody listens there any more.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let session = session(&[dead.to_string(), addr.to_string()]).await;
    session.create_topic(name("a"), 1, TopicConfig::default()).await.unwrap().unwrap();
    assert_eq!(follower.inner.lock().unwrap().state.topics().count(), 0);
    assert_eq!(follower.inner.lock().unwrap().proposals.len(), 1, "the leader is remembered");
}

#[tokio::test]
async fn without_a_session_nothing_is_sent() {
    let (member, addr) = serve().await;
    let client = client(&[addr.to_string()]);
    let e = client.propose(Command::AllocateProducerIds { count: 1 }).await.unwrap_err();
    assert_eq!(e, MetaError::SessionExpired);
    assert!(member.inner.lock().unwrap().proposals.is_empty());
}
