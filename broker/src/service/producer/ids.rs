//! Producer ids: ranges of the quorum, handed out one by one.

use tidemill_meta_client::MetaClient;
use tidemill_types::meta::{Command, Reply};

use crate::fault::{Fault, rejected};

/// Ids of one range: one command serves so many producers. Ids of a range that a broker did not hand out are lost.
const RANGE: u32 = 1_000;

/// The rest of the current range.
#[derive(Debug, Default)]
pub(crate) struct Ids(tokio::sync::Mutex<std::ops::Range<i64>>);

impl Ids {
    /// An id that nobody had before.
    ///
    /// # Errors
    /// The quorum does not answer. When the outcome is unknown a range is lost, nothing else.
    pub(crate) async fn next(&self, client: &MetaClient) -> Result<i64, Fault> {
        let mut range = self.0.lock().await;
        if let Some(id) = range.next() {
            return Ok(id);
        }
        let what = "allocate producer ids";
        let reply = client
            .propose(Command::AllocateProducerIds { count: RANGE })
            .await
            .map_err(|e| Fault::new(e.code(), format!("{what}: {e}")))?
            .map_err(|r| rejected(what, &r))?;
        let Reply::ProducerIds { first, count } = reply else {
            return Err(Fault::internal(what, "a reply of another kind"));
        };
        *range = first..first.saturating_add(count.into());
        range.next().ok_or_else(|| Fault::internal(what, "an empty range"))
    }
}
