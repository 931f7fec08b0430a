//! Whether the broker's session proves ownership.

use tidemill_meta_client::MetaClient;
use tidemill_partition_log::OwnerSession;
use tidemill_types::SessionId;

/// Asks the client's current session.
#[derive(Clone, Debug)]
pub(crate) struct CurrentSession(pub(crate) MetaClient);

impl OwnerSession for CurrentSession {
    /// The session that counts is the one named in the `Acquire` of the epoch: a later one of this process proves nothing.
    fn is_valid(&self, session: SessionId) -> bool {
        self.0.session().is_some_and(|s| s.id() == session && s.is_valid_now())
    }
}
