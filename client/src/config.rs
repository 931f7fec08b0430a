//! How a client reaches its cluster.

use std::time::Duration;

use tidemill_runtime::defaults;

/// Deadline of an operation, unless the caller sets another.
const TIMEOUT: Duration = Duration::from_secs(30);
/// One try of a call within an operation. Shorter than the deadline, so that a silent server leaves time for another.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// TCP and HTTP/2 connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Configuration of a [`crate::Client`].
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Brokers to begin with, `http://host:port` or `host:port`; any live one is enough. 1 to 1 000.
    pub servers: Vec<String>,
    /// Deadline of every operation: connect, admin, topology look-ups, offsets.
    pub timeout: Duration,
    /// Deadline of one try within an operation.
    pub attempt_timeout: Duration,
    /// Time for a connection to come up.
    pub connect_timeout: Duration,
    /// First wait between tries; doubles with each, with jitter.
    pub backoff_min: Duration,
    /// Longest wait between tries.
    pub backoff_max: Duration,
    /// Largest answer that is accepted, bytes.
    pub max_answer_bytes: usize,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            servers: vec![format!("http://127.0.0.1:{}", defaults::PORT_GRPC)],
            timeout: TIMEOUT,
            attempt_timeout: ATTEMPT_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            backoff_min: Duration::from_millis(20),
            backoff_max: Duration::from_millis(500),
            max_answer_bytes: 96 << 20,
        }
    }
}

impl ClientConfig {
    /// The defaults with these servers.
    #[must_use]
    pub fn new(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { servers: servers.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}
