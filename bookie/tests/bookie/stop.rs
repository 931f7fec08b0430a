//! The ordered stop, health and metrics.

use tidemill_proto::bookie::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    broker::Broker,
    calls::{Adds, entry, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::soon,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_answers_what_was_accepted_and_announces_the_restart() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"x").await, Code::Ok);
    let sent = adds.send((1..100).map(|i| (entry(ledger, i, &[1; 5000]), false)).collect()).await;
    let id = bookie.id();
    let stopping = tokio::spawn(async move { bookie.stop().await });
    let rest = adds.rest().await;
    soon("the stop", stopping).await.unwrap();
    // Either the whole message was taken, then every answer is out, or none of it.
    let ok: Vec<u64> = rest.iter().filter(|(_, c)| *c == Code::Ok).map(|(r, _)| *r).collect();
    assert!(rest.iter().all(|(_, c)| matches!(c, Code::Ok | Code::NotReady)), "{rest:?}");
    assert!(ok.is_empty() || ok.len() == sent.len(), "{} of {}", ok.len(), sent.len());
    let member = quorum.look(|s| s.member(id).unwrap().clone());
    assert!(member.restarting && member.session.is_none(), "{member:?}");

    let bookie = Bookie::start(config(&quorum, &disks)).await;
    for request in ok {
        let e = i64::try_from(request).unwrap() - 1;
        assert_eq!(read_codes(&bookie, ledger, e, e).await, [Code::Ok], "entry {e} was acknowledged");
    }
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_service_follows_the_boot() {
    let (quorum, disks) = (Quorum::uninitialised().await, Disks::new(1));
    let mut bookie = Bookie::try_start(config(&quorum, &disks)).await.unwrap();
    let channel =
        tonic::transport::Endpoint::from_shared(format!("http://{}", bookie.handle.addr())).unwrap();
    let health = HealthClient::new(channel.connect().await.unwrap());
    let status = async |service: &str| {
        let request = HealthCheckRequest { service: service.to_owned() };
        health.clone().check(request).await.unwrap().into_inner().status()
    };
    let data = "tidemill.bookie.v1.BookieData";
    assert_eq!(status(data).await, ServingStatus::NotServing);
    quorum.command(tidemill_types::meta::Command::Init { cluster: quorum.cluster }).unwrap();
    bookie.serves().await;
    crate::wait::until("serving", async || (status(data).await == ServingStatus::Serving).then_some(()))
        .await;
    assert_eq!(status("").await, ServingStatus::Serving);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_page_and_its_description_agree() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let page = bookie.metrics.encode();
    let shown: std::collections::BTreeSet<&str> = page
        .lines()
        .filter_map(|l| l.strip_prefix("tidemill_bookie_"))
        .filter_map(|l| l.split('{').next())
        .map(|n| n.trim_end_matches("_bucket").trim_end_matches("_count").trim_end_matches("_sum"))
        .collect();
    let doc = include_str!("../../../docs/ops/bookie.md");
    let table = &doc[doc.find("## Metrics").unwrap()..];
    let described: std::collections::BTreeSet<&str> = table
        .lines()
        .filter_map(|l| l.strip_prefix("| `"))
        .filter_map(|l| l.split(" | ").next())
        .flat_map(|names| names.split(", "))
        .map(|n| n.trim_matches('`'))
        .collect();
    assert_eq!(shown, described);
    bookie.stop().await;
}
