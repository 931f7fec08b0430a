//! Which member to ask, and the connections to them.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use tidemill_proto::meta::{LeaderHint, meta_client::MetaClient as Stub};
use tidemill_runtime::{defaults, net};
use tonic::transport::{Channel, Endpoint};

/// Largest message from the quorum: a piece of a view, an answer.
const MAX_MESSAGE: usize = 64 << 20;
/// Members that are remembered at most; a hint beyond replaces the oldest learned one.
const MAX_ADDRESSES: usize = 64;

/// The members and the connections to them.
#[derive(Debug)]
pub(crate) struct Quorum {
    connect_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Configured ones first, then learned ones.
    addresses: Vec<String>,
    configured: usize,
    channels: BTreeMap<String, Channel>,
    leader: Option<String>,
    /// Next to be asked while no leader is known.
    next: usize,
}

/// A member that could not be connected to: nothing was sent.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {why}")]
pub(crate) struct NotConnected {
    pub(crate) address: String,
    pub(crate) why: String,
}

impl Quorum {
    pub(crate) fn new(addresses: Vec<String>, connect_timeout: Duration) -> Self {
        let configured = addresses.len();
        Self {
            connect_timeout,
            state: Mutex::new(State {
                addresses,
                configured,
                channels: BTreeMap::new(),
                leader: None,
                next: 0,
            }),
        }
    }

    /// The leader as last heard, else the members in turn.
    pub(crate) fn leader_or_next(&self) -> Option<String> {
        let mut s = self.state.lock();
        s.leader.clone().or_else(|| s.turn())
    }

    /// The members in turn, for what any member answers.
    pub(crate) fn next(&self) -> Option<String> {
        self.state.lock().turn()
    }

    /// All addresses that are known.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.state.lock().addresses.clone()
    }

    /// This member answered as leader.
    pub(crate) fn leads(&self, address: &str) {
        let mut s = self.state.lock();
        if s.leader.as_deref() != Some(address) {
            s.leader = Some(address.to_owned());
        }
    }

    /// `from` does not lead and says who does. True when that is news worth an immediate try.
    pub(crate) fn hint(&self, from: &str, hint: &LeaderHint) -> bool {
        let mut s = self.state.lock();
        if hint.address.is_empty() || hint.address == from {
            s.leader = None;
            return false;
        }
        s.learn(&hint.address);
        s.leader = Some(hint.address.clone());
        true
    }

    /// Another member that was heard of.
    pub(crate) fn learn(&self, address: &str) {
        self.state.lock().learn(address);
    }

    /// No answer from this member: its connection is given up and it is not taken for the leader any more.
    pub(crate) fn failed(&self, address: &str) {
        let mut s = self.state.lock();
        s.channels.remove(address);
        if s.leader.as_deref() == Some(address) {
            s.leader = None;
        }
    }

    /// A connected stub.
    pub(crate) async fn stub(&self, address: &str) -> Result<Stub<Channel>, NotConnected> {
        let known = self.state.lock().channels.get(address).cloned();
        let channel = match known {
            Some(c) => c,
            None => self.connect(address).await?,
        };
        Ok(Stub::new(channel).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE))
    }

    async fn connect(&self, address: &str) -> Result<Channel, NotConnected> {
        let fail = |why: String| NotConnected { address: address.to_owned(), why };
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|e| fail(e.to_string()))?
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(defaults::KEEP_ALIVE)
            .keep_alive_timeout(defaults::KEEP_ALIVE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(defaults::STREAM_WINDOW)
            .initial_connection_window_size(defaults::CONNECTION_WINDOW);
        // Connecting here, not lazily: a connection that cannot be made proves that nothing was sent.
        let channel = tokio::time::timeout(self.connect_timeout, net::connect(&endpoint))
            .await
            .map_err(|_| fail("no connection in time".to_owned()))?
            .map_err(|e| fail(root_cause(&e)))?;
        self.state.lock().channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }
}

impl State {
    fn turn(&mut self) -> Option<String> {
        let n = self.addresses.len();
        if n == 0 {
            return None;
        }
        self.next = (self.next + 1) % n;
        self.addresses.get(self.next).cloned()
    }

    fn learn(&mut self, address: &str) {
        if self.addresses.iter().any(|a| a == address) {
            return;
        }
        if self.addresses.len() >= self.configured.max(MAX_ADDRESSES)
            && self.configured < self.addresses.len()
        {
            self.addresses.remove(self.configured);
        }
        self.addresses.push(address.to_owned());
    }
}

fn root_cause(e: &dyn std::error::Error) -> String {
    let mut at = e;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_and_failures_move_the_choice() {
        let q = Quorum::new(vec!["a:1".into(), "b:1".into()], Duration::from_secs(1));
        assert_eq!(q.leader_or_next().as_deref(), Some("b:1"));
        assert_eq!(q.leader_or_next().as_deref(), Some("a:1"));
        assert!(q.hint("a:1", &LeaderHint { node: 7, address: "c:1".into() }));
        assert_eq!(q.leader_or_next().as_deref(), Some("c:1"));
        q.failed("c:1");
        let turns: Vec<_> = (0..3).filter_map(|_| q.leader_or_next()).collect();
        assert!(turns.contains(&"c:1".to_owned()), "a learned member stays known: {turns:?}");
        assert!(!q.hint("a:1", &LeaderHint { node: 0, address: String::new() }));
    }
}
