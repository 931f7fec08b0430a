//! What `send` and the driver have in common.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use super::{
    ProducerConfig,
    accumulator::{Accumulator, Identity, Partition},
    counters::Counting,
    topic::{Sticky, TopicState},
};
use crate::topology::TopicFacts;

pub(super) const OPEN: u8 = 0;
pub(super) const CLOSED: u8 = 1;
pub(super) const FENCED: u8 = 2;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: ProducerConfig,
    /// Free bytes of the memory bound.
    pub(super) memory: Semaphore,
    pub(super) counting: Counting,
    pub(super) state: AtomicU8,
    /// A sender waits for memory: open batches go now.
    pub(super) pressure: AtomicBool,
    /// Partitions that the driver has to look at; each at most once.
    pub(super) announced: Mutex<Vec<usize>>,
    pub(super) wake: Notify,
    /// All partitions of all topics, by lane.
    pub(super) partitions: Mutex<Vec<Arc<Partition>>>,
    pub(super) topics: Mutex<HashMap<Arc<str>, Arc<TopicState>>>,
    /// The id that partitions begin with.
    first_identity: Identity,
}

impl Shared {
    pub(super) fn new(config: ProducerConfig, first_identity: Identity) -> Arc<Self> {
        Arc::new(Self {
            memory: Semaphore::new(config.memory_bytes),
            config,
            counting: Counting::default(),
            state: AtomicU8::new(OPEN),
            pressure: AtomicBool::new(false),
            announced: Mutex::new(Vec::new()),
            wake: Notify::new(),
            partitions: Mutex::new(Vec::new()),
            topics: Mutex::new(HashMap::new()),
            first_identity,
        })
    }

    /// Tells the driver about a partition.
    pub(super) fn announce(&self, lane: usize) {
        let mut list = self.announced.lock();
        list.push(lane);
        let first = list.len() == 1;
        drop(list);
        if first {
            self.wake.notify_one();
        }
    }

    pub(super) fn under_pressure(&self) {
        self.pressure.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// The topic with at least as many partitions as `facts` says.
    pub(super) fn topic(self: &Arc<Self>, name: &str, facts: TopicFacts) -> Arc<TopicState> {
        let mut topics = self.topics.lock();
        let state = topics.entry(Arc::from(name)).or_insert_with_key(|name| {
            Arc::new(TopicState {
                name: name.clone(),
                producer: Arc::as_ptr(self) as usize,
                partitions: arc_swap::ArcSwap::default(),
                sticky: Arc::new(Sticky::default()),
                max_message_bytes: facts.max_message_bytes.into(),
            })
        });
        state.max_message_bytes.store(facts.max_message_bytes, Ordering::Relaxed);
        let known = state.partitions.load();
        if (known.len() as u64) < u64::from(facts.partitions) {
            let mut grown = known.to_vec();
            let mut all = self.partitions.lock();
            while let Ok(index) = u32::try_from(grown.len())
                && index < facts.partitions
            {
                let acc = Accumulator::new(self.first_identity, self.config.compression);
                let partition = Arc::new(Partition {
                    lane: all.len(),
                    topic: state.name.clone(),
                    index,
                    sticky: state.sticky.clone(),
                    acc: Mutex::new(acc),
                });
                all.push(partition.clone());
                grown.push(partition);
            }
            drop(all);
            let first = known.is_empty();
            state.sticky.set_count(facts.partitions);
            state.partitions.store(Arc::new(grown));
            if first {
                // Producers that start together do not all begin with the same partition.
                state.sticky.leave(0);
            }
        }
        state.clone()
    }
}
