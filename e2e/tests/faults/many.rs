//! A broker with many partitions dies: its partitions are taken over in batches, and each of them goes on where it ended.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream};
use tidemill_client::{Client, ProducerConfig, SendRecord};
use tidemill_e2e::{Cluster, Options, client};

const TOPIC: &str = "many";

/// One record to each partition; offsets by partition.
async fn one_each(client: &Client, partitions: u32) -> Result<Vec<i64>> {
    let producer = client
        .producer(ProducerConfig { linger: std::time::Duration::from_millis(1), ..ProducerConfig::default() })
        .await?;
    let topic = producer.topic(TOPIC).await?;
    let offsets = stream::iter(0..partitions)
        .map(|p| {
            let (producer, topic) = (producer.clone(), topic.clone());
            async move {
                let record = SendRecord { partition: Some(p), ..SendRecord::new(None, Some(b"v")) };
                let meta =
                    producer.send(&topic, record).await?.await.with_context(|| format!("partition {p}"))?;
                meta.offset.context("an offset")
            }
        })
        .buffered(partitions as usize);
    let offsets: Vec<Result<i64>> = offsets.collect().await;
    producer.close().await;
    offsets.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_partitions_of_a_dead_broker_are_taken_over() -> Result<()> {
    let partitions =
        std::env::var("TIDEMILL_E2E_PARTITIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let options = Options { brokers: 2, restart: false, ..Options::default() };
    let cluster = tokio::task::spawn_blocking(|| Cluster::start(options)).await??;
    let client = client(&cluster.server()).await?;
    client.admin().create_topic(TOPIC, partitions, [], false).await?;
    let begin = Instant::now();
    ensure!(one_each(&client, partitions).await?.iter().all(|o| *o == 0));
    let opened = begin.elapsed();
    cluster.kill("broker-1")?;
    let begin = Instant::now();
    // Half of them have an open ledger of a dead writer each.
    let offsets = one_each(&client, partitions).await?;
    let taken_over = begin.elapsed();
    ensure!(offsets.iter().all(|o| *o == 1), "a partition does not go on where it ended");
    #[expect(clippy::print_stdout, reason = "shown with --nocapture, and when the test fails")]
    {
        println!(
            "{partitions} partitions: first record to each after {opened:?}; a broker with half of them killed, next record to \
             each after {taken_over:?}, of which its session is 3 s"
        );
    }
    Ok(())
}
