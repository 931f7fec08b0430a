//! Random schedules: owners come and go, ledgers roll and are fenced, answers of the quorum are lost, clients retry. In the
//! end every sequence that a client was told about is there once, in order, at the offset that it was told.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proptest::prelude::*;
use tidemill_partition_log::{PartitionLog, ProduceError};

use crate::{
    cluster::{Broker, Cluster, batch, settle, submit},
    quorum::Fault,
};

#[derive(Clone, Debug)]
enum Step {
    /// The producer sends its next batches, several at once.
    Send {
        id: i64,
        batches: i32,
    },
    Hold(bool),
    /// Another broker takes over without a word to the old one.
    TakeOver,
    /// In order.
    Release,
    /// The ledger is fenced by somebody who does nothing more.
    Fence,
    /// The ledger becomes old.
    Roll,
    Fault(&'static str, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kinds = prop_oneof![Just("roll"), Just("append"), Just("take-over"), Just("close")];
    let step = prop_oneof![
        6 => (0i64..3, 1i32..4).prop_map(|(id, batches)| Step::Send { id, batches }),
        2 => any::<bool>().prop_map(Step::Hold),
        1 => Just(Step::TakeOver),
        1 => Just(Step::Release),
        1 => Just(Step::Fence),
        2 => Just(Step::Roll),
        2 => (kinds, any::<bool>()).prop_map(|(k, applied)| Step::Fault(k, applied)),
    ];
    proptest::collection::vec(step, 1..30)
}

/// An idempotent producer: what it was told, and what it still has to have answered, in order.
#[derive(Default)]
struct Producer {
    next: i32,
    unanswered: Vec<i32>,
    told: BTreeMap<i32, i64>,
}

struct Run {
    cluster: Cluster,
    broker: Broker,
    log: Arc<PartitionLog>,
    brokers: u128,
    producers: Vec<Producer>,
}

impl Run {
    /// Sends again, in order, whatever has no answer; stops at the first one that fails.
    async fn retry(&mut self, id: usize) {
        let p = &mut self.producers[id];
        let mut handles = Vec::new();
        for seq in p.unanswered.clone() {
            let value = format!("{id}/{seq}");
            let b = batch(&[&value], Some((i64::try_from(id).unwrap(), 0, seq)));
            handles.push((seq, submit(&self.log, b).await));
        }
        for (seq, h) in handles {
            // The client's own patience: then it does not know.
            match tokio::time::timeout(Duration::from_secs(20), h).await {
                Ok(Ok(o)) => {
                    p.told.insert(seq, o.base_offset.0);
                    p.unanswered.retain(|s| *s != seq);
                }
                Ok(Err(e)) => {
                    let expected = matches!(
                        e,
                        ProduceError::NotOwner
                            | ProduceError::NotWritten
                            | ProduceError::Unknown
                            | ProduceError::OutOfOrder { .. }
                            | ProduceError::UnknownProducer { .. }
                    );
                    assert!(expected, "{e:?}");
                    return;
                }
                Err(_) => return,
            }
        }
    }

    fn own_next(&mut self) {
        self.brokers += 1;
        self.broker = self.cluster.broker(self.brokers);
        self.log = self.cluster.own(&self.broker);
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Send { id, batches } => {
                let id = usize::try_from(id).unwrap();
                let p = &mut self.producers[id];
                // As many as are remembered, and no more, are in flight.
                let room = 5 - i32::try_from(p.unanswered.len()).unwrap();
                for _ in 0..batches.min(room) {
                    p.unanswered.push(p.next);
                    p.next += 1;
                }
                self.retry(id).await;
            }
            Step::Hold(hold) => self.cluster.hold_adds(hold),
            Step::TakeOver => self.own_next(),
            Step::Release => {
                self.log.release().await;
                self.own_next();
            }
            Step::Fence => {
                if let Some(l) = self.log.describe().open_ledger {
                    let _ = self.cluster.broker(900).ctx.ledgers.recover(l).await;
                }
            }
            Step::Roll => {
                self.cluster.clock.advance(Duration::from_secs(599));
                self.broker.tick(&self.log, Duration::ZERO);
                settle().await;
            }
            Step::Fault(kind, applied) => {
                self.broker.meta.fault(kind, if applied { Fault::AppliedUnheard } else { Fault::Lost });
            }
        }
    }
}

async fn run(steps: Vec<Step>) {
    let cluster = Cluster::with(|c| {
        c.roll_age = Duration::from_secs(599);
        c.state_entry_every = 500;
        c.tail_cache_bytes = 1_000;
    });
    let broker = cluster.broker(1);
    let log = cluster.own(&broker);
    let producers = (0..3).map(|_| Producer::default()).collect();
    let mut run = Run { cluster, broker, log, brokers: 1, producers };
    for step in steps {
        run.step(step).await;
    }
    // Heal, and let every client have its answers.
    run.cluster.hold_adds(false);
    run.own_next();
    for _ in 0..3 {
        for id in 0..3 {
            run.retry(id).await;
        }
    }
    run.log.ready().await;
    let dump = run.cluster.dump(&run.log).await;
    for (n, (offset, _)) in dump.iter().enumerate() {
        assert_eq!(*offset, i64::try_from(n).unwrap(), "offsets without holes");
    }
    for (id, p) in run.producers.iter().enumerate() {
        assert!(p.unanswered.is_empty(), "producer {id} has no answer for {:?}", p.unanswered);
        let mine: Vec<(i64, i32)> = dump
            .iter()
            .filter_map(|(o, v)| Some((*o, v.strip_prefix(&format!("{id}/"))?.parse().unwrap())))
            .collect();
        let sequences: Vec<i32> = mine.iter().map(|(_, s)| *s).collect();
        assert_eq!(sequences, (0..p.next).collect::<Vec<_>>(), "producer {id}: each once, in order");
        for (offset, seq) in mine {
            assert_eq!(p.told[&seq], offset, "producer {id}, sequence {seq}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_acknowledged_record_is_there_once_at_its_offset(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(steps));
    }
}
