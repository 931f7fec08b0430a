//! Start in any order, health, reflection, the end.

use tidemill_proto::v1;
use tidemill_types::ErrorCode;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::harness::{Broker, Cluster, code, within};

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
    crate::harness::eventually("SERVING", async || {
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
    crate::harness::eventually("a waiting fetch", async || {
        (b.metric("tidemill_broker_fetch_waiting") >= 1.0).then_some(())
    })
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
