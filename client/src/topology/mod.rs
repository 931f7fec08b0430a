//! What the client knows of the cluster: servers, topics, who owns which partition. Learned from answers, corrected by
//! the hints in errors.

mod refresh;

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tidemill_proto::v1;

/// Most topics in the cache; the rest is asked for each time.
const MAX_TOPICS: usize = 100_000;

/// The cache.
#[derive(Debug)]
pub(crate) struct Topology {
    state: Mutex<State>,
    /// Held by the one refresh that is on its way.
    flight: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    configured: Vec<Arc<str>>,
    /// Live brokers of the last answer.
    brokers: Vec<Arc<str>>,
    /// The server that answered last is asked first.
    preferred: Option<Arc<str>>,
    topics: HashMap<Arc<str>, Entry>,
    /// Topics whose refresh somebody waits for.
    wanted: Vec<Arc<str>>,
    /// Goes up with every answer.
    generation: u64,
}

#[derive(Debug)]
struct Entry {
    generation: u64,
    max_message_bytes: usize,
    partitions: Vec<Route>,
}

/// Who serves a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    /// `None`: nobody, as far as is known.
    pub(crate) owner: Option<Arc<str>>,
    pub(crate) epoch: u64,
}

/// What a producer or consumer needs of a topic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TopicFacts {
    pub(crate) partitions: u32,
    pub(crate) max_message_bytes: usize,
    pub(crate) generation: u64,
}

impl Topology {
    pub(crate) fn new(servers: &[String]) -> Self {
        let configured = servers.iter().map(|s| Arc::from(s.as_str())).collect();
        Self {
            state: Mutex::new(State { configured, ..State::default() }),
            flight: tokio::sync::Mutex::new(()),
        }
    }

    /// Addresses to ask, the best first.
    pub(crate) fn servers(&self) -> Vec<Arc<str>> {
        let state = self.state.lock();
        let mut all: Vec<Arc<str>> = Vec::with_capacity(state.configured.len() + state.brokers.len() + 1);
        let order = state.preferred.iter().chain(&state.configured).chain(&state.brokers);
        for s in order {
            if !all.contains(s) {
                all.push(s.clone());
            }
        }
        all
    }

    /// This server answered.
    pub(crate) fn answered(&self, server: &Arc<str>) {
        let mut state = self.state.lock();
        if state.preferred.as_ref() != Some(server) {
            state.preferred = Some(server.clone());
        }
    }

    /// Takes over a description.
    pub(crate) fn learn(&self, answer: &v1::DescribeResponse) {
        let mut state = self.state.lock();
        if !answer.brokers.is_empty() {
            state.brokers = answer
                .brokers
                .iter()
                .filter(|b| b.live && !b.address.is_empty())
                .take(1_000)
                .map(|b| Arc::from(b.address.as_str()))
                .collect();
        }
        state.generation += 1;
        for topic in &answer.topics {
            state.learn_topic(topic);
        }
        for name in &answer.unknown {
            state.topics.remove(name.as_str());
        }
    }

    /// Takes over one topic.
    pub(crate) fn learn_topic(&self, topic: &v1::Topic) {
        let mut state = self.state.lock();
        state.generation += 1;
        state.learn_topic(topic);
    }

    /// The topic is gone.
    pub(crate) fn forget(&self, topic: &str) {
        self.state.lock().topics.remove(topic);
    }

    /// An error named the owner: used at once, unless something newer is known.
    pub(crate) fn hint(&self, topic: &str, partition: u32, owner: &str, epoch: u64) {
        let mut state = self.state.lock();
        let Some(route) = state.topics.get_mut(topic).and_then(|t| t.partitions.get_mut(partition as usize))
        else {
            return;
        };
        if epoch == 0 || epoch >= route.epoch {
            *route = Route { owner: Some(Arc::from(owner)), epoch: epoch.max(route.epoch) };
        }
    }

    /// The owner that the cache knows, with the generation of that knowledge.
    pub(crate) fn route(&self, topic: &str, partition: u32) -> Option<(Route, u64)> {
        let state = self.state.lock();
        let entry = state.topics.get(topic)?;
        Some((entry.partitions.get(partition as usize)?.clone(), entry.generation))
    }

    fn facts(&self, topic: &str) -> Option<TopicFacts> {
        let state = self.state.lock();
        let entry = state.topics.get(topic)?;
        Some(TopicFacts {
            partitions: u32::try_from(entry.partitions.len()).unwrap_or(u32::MAX),
            max_message_bytes: entry.max_message_bytes,
            generation: entry.generation,
        })
    }
}

impl State {
    fn learn_topic(&mut self, topic: &v1::Topic) {
        if self.topics.len() >= MAX_TOPICS && !self.topics.contains_key(topic.name.as_str()) {
            return;
        }
        let mut partitions = vec![Route::default(); topic.partitions.len()];
        let old = self.topics.get(topic.name.as_str());
        for p in &topic.partitions {
            let Some(slot) = partitions.get_mut(p.index as usize) else { continue };
            let owner = (!p.owner.is_empty()).then(|| Arc::from(p.owner.as_str()));
            *slot = Route { owner, epoch: p.epoch };
            // A broker that is behind must not undo a hint of a newer epoch.
            if let Some(newer) = old.and_then(|t| t.partitions.get(p.index as usize))
                && newer.epoch > p.epoch
            {
                *slot = newer.clone();
            }
        }
        let max_message_bytes = topic
            .config
            .get("max.message.bytes")
            .and_then(|v| v.parse().ok())
            .unwrap_or(tidemill_runtime::defaults::MAX_MESSAGE_BYTES as usize);
        let entry = Entry { generation: self.generation, max_message_bytes, partitions };
        self.topics.insert(Arc::from(topic.name.as_str()), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(owner: &str, epoch: u64) -> v1::Topic {
        v1::Topic {
            name: "t".into(),
            partitions: vec![v1::Partition { index: 0, owner: owner.into(), epoch, owner_name: "b".into() }],
            ..v1::Topic::default()
        }
    }

    #[test]
    fn the_newest_epoch_wins() {
        let t = Topology::new(&["a:1".to_owned()]);
        t.learn_topic(&topic("a:1", 3));
        t.hint("t", 0, "b:1", 4);
        assert_eq!(t.route("t", 0).unwrap().0.owner.as_deref(), Some("b:1"));
        t.hint("t", 0, "c:1", 2);
        t.learn_topic(&topic("a:1", 3));
        assert_eq!(t.route("t", 0).unwrap().0, Route { owner: Some("b:1".into()), epoch: 4 });
        t.learn_topic(&topic("", 5));
        assert_eq!(t.route("t", 0).unwrap().0, Route { owner: None, epoch: 5 });
    }

    #[test]
    fn the_server_that_answered_is_asked_first() {
        let t = Topology::new(&["a:1".to_owned(), "b:1".to_owned()]);
        t.answered(&Arc::from("b:1"));
        let brokers = vec![v1::Broker { address: "c:1".into(), live: true, ..v1::Broker::default() }];
        t.learn(&v1::DescribeResponse { brokers, ..v1::DescribeResponse::default() });
        let order: Vec<_> = t.servers().iter().map(ToString::to_string).collect();
        assert_eq!(order, ["b:1", "a:1", "c:1"]);
    }
}
