//! What became of a batch: the owner decides it, after a failover too.

use tidemill_partition_log::{BatchOutcome, FetchError, ProduceError, producers::Sequenced};
use tidemill_types::Offset;

use crate::cluster::{Cluster, NOW_MS, batch, produce, settle, submit};

fn at(sequence: i32) -> tidemill_record::Batch {
    batch(&["v"], Some((7, 0, sequence)))
}

fn asked(sequence: i32) -> Sequenced {
    Sequenced { id: 7, epoch: 0, first: sequence, last: sequence }
}

fn written(offset: i64) -> BatchOutcome {
    BatchOutcome::Written { place: Some((Offset(offset), NOW_MS)) }
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_exact() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    assert_eq!(log.batch_outcome(asked(0), false).await, Ok(BatchOutcome::NoState));
    for sequence in 0..8 {
        log.produce(vec![at(sequence)]).await.unwrap();
    }
    assert_eq!(log.batch_outcome(asked(7), false).await, Ok(written(7)));
    assert_eq!(
        log.batch_outcome(asked(1), false).await,
        Ok(BatchOutcome::Written { place: None }),
        "its offset is forgotten"
    );
    for not_written in [8, 30] {
        assert_eq!(log.batch_outcome(asked(not_written), false).await, Ok(BatchOutcome::NotWritten));
    }
    log.produce(vec![batch(&["v"], Some((7, 1, 0)))]).await.unwrap();
    assert_eq!(log.batch_outcome(asked(7), false).await, Ok(BatchOutcome::Forgotten), "a newer epoch wrote");
}

/// "Not written" stays true: a frame that is still on its way is refused. Retries of what was written are still recognised.
#[tokio::test(start_paused = true)]
async fn a_closed_producer_writes_nothing_new() {
    let c = Cluster::new();
    let b = c.broker(1);
    let log = c.serve(&b).await;
    log.produce(vec![at(0)]).await.unwrap();
    assert_eq!(log.batch_outcome(asked(1), true).await, Ok(BatchOutcome::NotWritten));
    assert_eq!(log.produce(vec![at(1)]).await, Err(ProduceError::ProducerClosed { id: 7 }));
    assert!(log.produce(vec![at(0)]).await.unwrap().duplicate);
    assert_eq!(log.batch_outcome(asked(1), true).await, Ok(BatchOutcome::NotWritten));
    // Its next epoch and others go on.
    log.produce(vec![batch(&["v"], Some((7, 1, 0)))]).await.unwrap();
    log.produce(vec![batch(&["v"], Some((8, 0, 0)))]).await.unwrap();
    assert_eq!(log.batch_outcome(Sequenced { id: 9, ..asked(0) }, true).await, Ok(BatchOutcome::NoState));
    assert_eq!(
        log.produce(vec![batch(&["v"], Some((9, 0, 0)))]).await,
        Err(ProduceError::ProducerClosed { id: 9 })
    );
}

#[tokio::test(start_paused = true)]
async fn a_pushed_batch_is_waited_for_and_the_next_owner_knows_the_rest() {
    let c = Cluster::new();
    let (a, b) = (c.broker(1), c.broker(2));
    let log = c.serve(&a).await;
    produce(&log, "x").await;
    log.produce(vec![at(0)]).await.unwrap();
    c.hold_adds(true);
    let pushed = submit(&log, at(1)).await;
    let mut answer = Box::pin(log.batch_outcome(asked(1), false));
    settle().await;
    assert!(futures::poll!(&mut answer).is_pending(), "not decided yet");
    c.hold_adds(false);
    assert_eq!(answer.await, Ok(written(2)));
    pushed.await.unwrap();
    // The owner goes with a batch in flight: it does not guess, the next one knows.
    c.hold_adds(true);
    let lost = submit(&log, at(2)).await;
    let question = {
        let log = log.clone();
        tokio::spawn(async move { log.batch_outcome(asked(2), false).await })
    };
    settle().await;
    let next = c.serve(&b).await;
    log.abandon();
    assert_eq!(lost.await, Err(ProduceError::Unknown));
    assert_eq!(question.await.unwrap(), Err(FetchError::NotOwner));
    c.hold_adds(false);
    assert_eq!(next.batch_outcome(asked(1), false).await, Ok(written(2)));
    let fate = next.batch_outcome(asked(2), true).await.unwrap();
    let there = c.dump(&next).await.len();
    assert_eq!(fate == written(3), there == 4, "{fate:?}, {there} records");
    assert!(fate == written(3) || fate == BatchOutcome::NotWritten);
    // A paused owner that wakes up says nothing.
    assert_eq!(log.batch_outcome(asked(2), false).await, Err(FetchError::NotOwner));
}
