//! The leader goes.

use tidemill_proto::meta::{ReadRequest, read_response::Outcome};
use tidemill_types::{
    RequestId, TopicConfig, TopicName,
    meta::{Answer, Command, Query, Rejection, Reply, Request},
};

use crate::common::{Three, caught_up, stub};

fn create(name: &str) -> Command {
    Command::CreateTopic {
        name: TopicName::new(name).unwrap(),
        partitions: 1,
        config: TopicConfig::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_others_go_on_and_a_retry_is_executed_once() {
    let mut three = Three::start().await;
    let session = three.client.broker(1).await;
    let meta = three.client.meta.clone();
    let before =
        Request { session: session.id(), request: RequestId(u64::MAX - 1), command: create("before") };
    let Ok(Reply::Topic(first)) = meta.propose_request(&before).await.unwrap() else { panic!("created") };

    let old = three.leader().await;
    three.members[old].crash().await;
    let again = meta.propose_request(&before).await.unwrap();
    assert_eq!(again, Ok(Reply::Topic(first.clone())), "the answer of the first try");
    let twice =
        meta.propose_request(&Request { request: RequestId(u64::MAX), ..before.clone() }).await.unwrap();
    assert!(matches!(twice, Err(Rejection::Exists { .. })), "{twice:?}");
    let Ok(Reply::Topic(second)) = session.propose(create("after")).await.unwrap() else { panic!("created") };
    assert_ne!(three.leader().await, old);

    three.members[old].start_again().await.unwrap();
    let leader = three.members[three.leader().await].address();
    caught_up(&three.client, &three.members[old].address(), &leader).await;
    let (topics, _) = meta.read(&Query::Topics { after: None, limit: 10 }).await.unwrap();
    assert_eq!(topics, Answer::Topics(vec![first, second]));
    assert_eq!(session.is_lost(), None);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_answered_without_a_majority() {
    let mut three = Three::start().await;
    let leader = three.leader().await;
    for i in (0..3).filter(|i| *i != leader) {
        three.members[i].crash().await;
    }
    let mut stub = stub(&three.members[leader].address());
    let query = tidemill_metadata::encode_query(&Query::Cluster).unwrap();
    let answer = stub.read(ReadRequest { cluster: Vec::new(), query }).await;
    let answered = answer.as_ref().is_ok_and(|a| matches!(a.get_ref().outcome, Some(Outcome::Answer(_))));
    assert!(!answered, "{answer:?}");
    three.stop().await;
}
