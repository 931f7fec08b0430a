//! What a user relies on when consuming.

use std::time::Duration;

use tidemill_proto::v1;
use tidemill_record::{BatchBuilder, Compression, Limits};
use tidemill_types::ErrorCode;

use super::Cluster;
use crate::{Client, Consumer, ConsumerConfig, Event, GapKind, Start};

const LONG: Duration = Duration::from_secs(30);

/// Batches of ten records, "0", "1", ...
fn fill(cluster: &Cluster, partition: u32, batches: i64) {
    let mut world = cluster.world.lock();
    let log = world.partition("t", partition).unwrap();
    for _ in 0..batches {
        let mut b = BatchBuilder::new(Limits::DEFAULT);
        for i in 0..10 {
            b.append(1, None, Some((log.end + i).to_string().as_bytes()), &[]).unwrap();
        }
        log.append(&b.finish(Compression::Zstd, None).unwrap()).unwrap();
    }
    drop(world);
    cluster.grown.notify_waiters();
}

fn consumer(client: &Client) -> Consumer {
    client.consumer(ConsumerConfig { max_wait: Duration::from_millis(20), ..ConsumerConfig::default() })
}

/// Polls until `want` records came; everything else that came with them too.
async fn read(c: &mut Consumer, want: usize) -> (Vec<i64>, Vec<Event>) {
    let (mut offsets, mut others) = (Vec::new(), Vec::new());
    while offsets.len() < want {
        let events = c.poll(LONG).await.unwrap();
        assert!(!events.is_empty(), "{offsets:?} {others:?}");
        for e in events {
            match e {
                Event::Batch(b) => {
                    for r in b.records {
                        assert_eq!(r.value.unwrap(), r.offset.to_string());
                        offsets.push(r.offset);
                    }
                }
                other => others.push(other),
            }
        }
    }
    (offsets, others)
}

#[tokio::test]
async fn reads_from_within_a_batch_and_follows_the_owner() {
    let cluster = Cluster::start(3, 2, 1).await;
    fill(&cluster, 0, 7);
    let client = cluster.client().await;
    let mut c = consumer(&client);
    assert_eq!(c.poll(LONG).await.unwrap_err().code, Some(ErrorCode::InvalidArgument));
    c.assign([("t", 0, Start::Offset(13))]).unwrap();
    let (offsets, others) = read(&mut c, 57).await;
    assert_eq!((offsets, others), ((13..70).collect(), vec![]));
    for _ in 0..3 {
        cluster.world.lock().move_away("t", 0);
        let from = c.position("t", 0).unwrap();
        fill(&cluster, 0, 2);
        let (offsets, others) = read(&mut c, 20).await;
        assert_eq!((offsets, others), ((from..from + 20).collect(), vec![]));
    }
    assert_eq!(c.end_offsets().await.unwrap()[0].offset, c.position("t", 0));
}

#[tokio::test]
async fn starts_seek_pause_and_resume() {
    let cluster = Cluster::start(2, 3, 1).await;
    (0..3).for_each(|p| fill(&cluster, p, 2));
    let client = cluster.client().await;
    let mut c = consumer(&client);
    assert!(c.assign([("t", 0, Start::Earliest), ("t", 0, Start::Latest)]).is_err());
    c.assign_topics([("t", Start::Earliest)]).await.unwrap();
    assert_eq!(c.assignment().len(), 3);
    assert_eq!(read(&mut c, 60).await.0.len(), 60);
    c.pause("t", 0).unwrap();
    fill(&cluster, 0, 1);
    fill(&cluster, 1, 1);
    assert_eq!(read(&mut c, 10).await.0.len(), 10);
    assert_eq!((c.position("t", 0), c.position("t", 1)), (Some(20), Some(30)));
    c.seek("t", 0, Start::Offset(5)).unwrap();
    c.resume("t", 0).unwrap();
    assert_eq!(read(&mut c, 25).await.0, (5..30).collect::<Vec<_>>());
    // No record is that young: the end.
    c.assign([("t", 2, Start::Timestamp(5)), ("t", 1, Start::Latest)]).unwrap();
    assert!(c.seek("t", 0, Start::Earliest).is_err());
    while c.position("t", 2).is_none() || c.position("t", 1).is_none() {
        assert_eq!(c.poll(Duration::from_millis(5)).await.unwrap(), []);
    }
    fill(&cluster, 2, 1);
    assert_eq!(read(&mut c, 10).await.0, (20..30).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let cluster = Cluster::start(1, 1, 1).await;
    fill(&cluster, 0, 5);
    {
        let mut world = cluster.world.lock();
        let log = world.partition("t", 0).unwrap();
        log.log_start = 12;
        log.gap = Some(v1::Gap { kind: v1::gap::Kind::DataLoss.into(), from: 20, to: 30 });
        log.entries.remove(2);
    }
    let client = cluster.client().await;
    let mut c = consumer(&client);
    c.assign([("t", 0, Start::Offset(3))]).unwrap();
    let (offsets, others) = read(&mut c, 28).await;
    assert_eq!(offsets, (12..20).chain(30..50).collect::<Vec<_>>());
    let gaps: Vec<_> = others
        .into_iter()
        .map(|e| match e {
            Event::Gap(g) => (g.kind, g.from, g.to),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(gaps, [(GapKind::Trimmed, 3, 12), (GapKind::DataLoss, 20, 30)]);
    c.seek("t", 0, Start::Offset(51)).unwrap();
    match c.poll(LONG).await.unwrap().as_slice() {
        [Event::OutOfRange { offset: 51, log_start: 12, log_end: 50, .. }] => {}
        other => panic!("{other:?}"),
    }
    c.seek("t", 0, Start::Offset(49)).unwrap();
    assert_eq!(read(&mut c, 1).await.0, [49]);
}

#[tokio::test]
async fn damage_is_told_and_can_be_skipped() {
    let cluster = Cluster::start(1, 1, 1).await;
    fill(&cluster, 0, 3);
    {
        let mut world = cluster.world.lock();
        let batch = &mut world.partition("t", 0).unwrap().entries[1].1;
        let mut bytes = batch.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        *batch = bytes.into();
    }
    let client = cluster.client().await;
    let mut c = consumer(&client);
    c.assign([("t", 0, Start::Earliest)]).unwrap();
    let (offsets, mut others) = read(&mut c, 10).await;
    assert_eq!(offsets, (0..10).collect::<Vec<_>>());
    if others.is_empty() {
        others = c.poll(LONG).await.unwrap();
    }
    let [Event::Corrupt { offset: 10, next_offset, .. }] = others[..] else { panic!("{others:?}") };
    assert_eq!(next_offset, 20);
    c.seek("t", 0, Start::Offset(next_offset)).unwrap();
    assert_eq!(read(&mut c, 10).await.0, (20..30).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_unknown_topic_is_an_event() {
    let cluster = Cluster::start(1, 1, 1).await;
    let client = cluster.client().await;
    let mut c = consumer(&client);
    c.assign([("none", 0, Start::Offset(0)), ("t", 5, Start::Earliest)]).unwrap();
    let mut codes = Vec::new();
    while codes.len() < 2 {
        for e in c.poll(LONG).await.unwrap() {
            let Event::Failed { error, .. } = e else { panic!("{e:?}") };
            codes.push(error.code.unwrap().wire());
        }
    }
    codes.sort_unstable();
    assert_eq!(codes, ["UNKNOWN_PARTITION", "UNKNOWN_TOPIC"]);
}
