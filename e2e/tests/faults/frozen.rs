//! A broker is frozen past its session and woken up: it can neither acknowledge nor serve stale ends.

use std::time::Duration;

use anyhow::{Result, ensure};
use tidemill_client::v1;
use tidemill_e2e::Options;

use crate::{LIMIT, Scene, TOPIC};

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_broker_wakes_up_as_nobody() -> Result<()> {
    let scene = Scene::start(Options { brokers: 2, ..Options::default() }, 4).await?;
    let frozen = scene.cluster.port("broker-1")?;
    let before = scene.client.admin().describe([TOPIC]).await?;
    let mine: Vec<u32> =
        before.topics[0].partitions.iter().filter(|p| p.owner_name == "broker-1").map(|p| p.index).collect();
    ensure!(!mine.is_empty(), "broker-1 owns nothing");
    // A connection from before, so that its requests stand in the frozen process's socket.
    let channel =
        tonic::transport::Endpoint::from_shared(format!("http://127.0.0.1:{frozen}"))?.connect().await?;
    let mut old = v1::consumer_client::ConsumerClient::new(channel.clone());
    let mut producer = v1::producer_client::ProducerClient::new(channel);
    scene.cluster.freeze("broker-1")?;
    moved(&scene, &mine).await?;
    scene.load.progress(2_000, LIMIT).await?;
    scene.cluster.thaw("broker-1")?;
    for p in mine {
        let query = v1::ListOffsetsPartition {
            topic: TOPIC.to_owned(),
            partition: p,
            epoch: 0,
            at: Some(v1::list_offsets_partition::At::Latest(true)),
        };
        let mut request = tonic::Request::new(v1::ListOffsetsRequest { partitions: vec![query] });
        request.set_timeout(LIMIT);
        if let Ok(answer) = old.list_offsets(request).await {
            let offset = &answer.get_ref().offsets[0];
            ensure!(offset.error.is_some(), "a stale end of {p} was served: {offset:?}");
        }
        let record = v1::Record { value: Some("stale".into()), ..v1::Record::default() };
        let request = v1::ProduceRequest {
            topic: TOPIC.to_owned(),
            partition: Some(p),
            records: vec![record],
            ..v1::ProduceRequest::default()
        };
        let mut request = tonic::Request::new(request);
        request.set_timeout(Duration::from_secs(20));
        ensure!(producer.produce(request).await.is_err(), "partition {p}: the old owner acknowledged");
    }
    scene.end().await.map(drop)
}

/// Waits until the other broker owns these partitions.
async fn moved(scene: &Scene, partitions: &[u32]) -> Result<()> {
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let d = scene.client.admin().describe([TOPIC]).await?;
        let all = &d.topics[0].partitions;
        if partitions.iter().all(|p| all[*p as usize].owner_name == "broker-0") {
            return Ok(());
        }
        ensure!(std::time::Instant::now() < end, "not taken over: {all:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
