//! Start in any order, health, reflection, the end.

use tidemill_proto::{convert::code_of, v1};
use tidemill_types::{
    ErrorCode, MemberRole, RequestId,
    meta::{Answer, Command, Query, Request as MetaRequest},
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::{
    harness::{Broker, Cluster, batch, code, eventually, values, within},
    raw,
    stream::Stream,
};

async fn serving(b: &Broker, service: &str) -> ServingStatus {
    let r = HealthCheckRequest { service: service.to_owned() };
    HealthClient::new(b.channel()).check(r).await.unwrap().into_inner().status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_waits_for_its_cluster_and_says_so() {
    let c = Cluster::uninitialised(3).await;
    let b = c.start_broker(c.config("broker-0")).await;
    assert_eq!(serving(&b, "tidemill.v1.Producer").await, ServingStatus::NotServing);
    let e = b.metadata().describe(v1::DescribeRequest::default()).await.unwrap_err();
    assert_eq!(code(&e), ErrorCode::NotReady);
    assert!(b.sup.health().waiting().iter().any(|(what, _)| what == "broker-0/quorum"));
    c.initialise().await;
    within("readiness", b.sup.health().ready()).await;
    eventually("SERVING", async || {
        (serving(&b, "tidemill.v1.Producer").await == ServingStatus::Serving).then_some(())
    })
    .await;
    b.create("t", 1, &[]).await;

    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = ServerReflectionClient::new(b.channel())
        .server_reflection_info(tokio_stream::once(ask))
        .await
        .unwrap()
        .into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
    let names: Vec<String> = list.service.into_iter().map(|s| s.name).collect();
    for name in ["Producer", "Consumer", "Metadata", "Admin"] {
        assert!(names.contains(&format!("tidemill.v1.{name}")), "{names:?}");
    }

    // A second process of this name has to wait until the first one's session has ended.
    let second = c.start_broker(c.config("broker-0")).await;
    assert!(!second.sup.health().is_ready());
    let mut consumer = b.consumer();
    let p = v1::FetchPartition { topic: "t".into(), ..v1::FetchPartition::default() };
    let r = v1::FetchRequest { partitions: vec![p], max_wait_ms: 300_000, ..v1::FetchRequest::default() };
    let polling = tokio::spawn(async move { consumer.fetch(r).await });
    eventually("a waiting fetch", async || (b.metric("tidemill_broker_fetch_waiting") >= 1.0).then_some(()))
        .await;
    b.stop().await;
    // The long poll ended with the partition, not with its 300 s.
    let ended = within("the long poll", polling).await.unwrap();
    if let Ok(answer) = ended {
        let p = answer.into_inner().partitions.remove(0);
        assert!(p.batches.is_empty());
    }
    within("the second process", second.sup.health().ready()).await;
    second.owners_when("t", |o| o[0] == second.address).await;
    second.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_session_drops_everything_and_a_new_one_begins() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 2, &[]).await;
    let first = b.produce("t", 0, &values("v", 3)).await.unwrap();
    // Its session is closed behind its back, as one that expired.
    let (Answer::Members(members), _) = c.client.read(&Query::Members).await.unwrap() else { panic!() };
    let session = members.iter().find(|m| m.role == MemberRole::Broker).unwrap().session.unwrap();
    let request = MetaRequest { session, request: RequestId(u64::MAX), command: Command::CloseSession };
    c.client.propose_request(&request).await.unwrap().unwrap();
    eventually("a lost session", async || {
        (b.metric("tidemill_broker_sessions_lost_total") >= 1.0).then_some(())
    })
    .await;
    let again =
        eventually("a produce in the next session", async || b.produce("t", 0, &values("w", 1)).await.ok())
            .await;
    assert!(again.epoch > first.epoch);
    assert_eq!(again.base_offset, 3);
    assert_eq!(b.read_all("t", 0).await.len(), 4);
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_the_drain_and_no_frame_is_left_without_an_answer() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    let mut s = Stream::open(&b).await;
    for i in 0..20 {
        s.send(i, "t", 0, batch(&values("v", 1), None)).await;
    }
    let answered = s.results(20).await;
    assert!(answered.iter().all(|r| r.error.is_none()));
    b.stop().await;
    assert_eq!(code(&s.end().await.unwrap_err()), ErrorCode::NotReady);
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_produce_past_its_deadline_says_that_nobody_knows() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    b.produce("t", 0, &values("v", 1)).await.unwrap();
    for bookie in &c.bookies {
        bookie.stop().await;
    }
    let mut r = tonic::Request::new(v1::ProduceRequest {
        topic: "t".into(),
        partition: Some(0),
        batches: batch(&values("w", 1), None),
        ..v1::ProduceRequest::default()
    });
    r.metadata_mut().insert("grpc-timeout", "300m".parse().unwrap());
    let e = within("an answer", raw::producer(&b).await.produce(r)).await.unwrap_err();
    let (found, details) = code_of(&e).unwrap_or_else(|| panic!("{e:?}"));
    assert_eq!((found, details["outcome"].as_str()), (ErrorCode::DeadlineExceeded, "OUTCOME_UNKNOWN"));
    // Reads of what was acknowledged go on from memory.
    assert_eq!(b.fetch("t", 0, 0, true, 0).await.records.len(), 1);
    b.kill().await;
    c.stop().await;
}
