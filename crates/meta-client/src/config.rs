//! Settings of a client.

use std::{sync::Arc, time::Duration};

use tidemill_runtime::{Clock, SystemClock, defaults};
use tidemill_types::ClusterId;

/// Settings of a [`crate::MetaClient`].
#[derive(Clone, Debug)]
pub struct MetaClientConfig {
    /// Members of the quorum, `host:port`. One that answers is enough: the others are learned from it.
    pub addresses: Vec<String>,
    /// The cluster that must answer; `None` = the first that answers, kept from then on.
    pub cluster: Option<ClusterId>,
    /// Boot time and wall time for the validity of sessions.
    pub clock: Arc<dyn Clock>,
    /// One try of one request.
    pub attempt_timeout: Duration,
    /// All tries of one call together.
    pub give_up_after: Duration,
    /// Between two renewals of a session.
    pub session_renewal: Duration,
    /// How long [`crate::MetaClient::open_session`] waits for the session of an earlier process of the same member to expire.
    pub open_session_wait: Duration,
    /// How far two ticks of quorum time must be apart to confirm a time (metadata, Time).
    pub time_settle: Duration,
}

impl MetaClientConfig {
    /// Defaults with the kernel's clock.
    #[must_use]
    pub fn new(addresses: Vec<String>) -> Self {
        Self {
            addresses,
            cluster: None,
            clock: Arc::new(SystemClock),
            attempt_timeout: Duration::from_secs(2),
            give_up_after: Duration::from_secs(15),
            session_renewal: defaults::SESSION_RENEWAL,
            open_session_wait: defaults::SESSION_TTL * 5,
            time_settle: defaults::TIME_SETTLE,
        }
    }
}
