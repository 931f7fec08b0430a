//! Writing: records into batches, batches to the owners, every record decided exactly once.
//!
//! ```text
//!  send ──> Accumulator (per partition: open batch, closed batches)      on the caller's thread, no allocation per record
//!              │ announced once per batch
//!              ▼
//!           Driver (one task) ──> Lane (per partition: order, tries, doubt) ──> Link (per broker: one ProduceStream)
//! ```
//!
//! What makes it exactly once (2.1): a batch's bytes and sequences are fixed when it is sealed; only whole batches are
//! sent again, from the first undecided one on, and never while one behind it is on its way. When a batch fails for
//! good its sequence stays a gap, so what was sealed behind it fails too, and the partition goes on with a new
//! producer id. Other partitions keep theirs.

mod accumulator;
mod config;
mod counters;
mod delivery;
mod driver;
mod error;
mod outcome;
mod record;
mod send;
mod shared;
mod topic;

use std::sync::{Arc, atomic::Ordering};

use tidemill_proto::v1;
use tidemill_types::ErrorCode;
use tokio::sync::{mpsc, oneshot};

pub use config::ProducerConfig;
pub use counters::Counters;
pub use delivery::{Delivery, RecordMeta};
pub use error::{DeliveryError, NotDelivered, ProducerError};
pub use record::SendRecord;
pub use topic::TopicHandle;

use self::{
    accumulator::Identity,
    driver::{Command, Driver},
    shared::{CLOSED, OPEN, Shared},
};
use crate::{Client, ClientError};

/// Sends records. Clones share everything. When the last clone is dropped, what was sent still goes out in the
/// background; [`Self::close`] waits for it.
#[derive(Clone, Debug)]
pub struct Producer {
    client: Client,
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
}

impl Producer {
    pub(crate) async fn start(client: Client, config: ProducerConfig) -> Result<Self, ClientError> {
        config.check()?;
        let identity = if config.idempotent {
            let answer = client
                .call_any("ask for a producer id", |call| {
                    let request = call.request(v1::InitProducerRequest::default());
                    async move { call.producer().init_producer(request).await }
                })
                .await?;
            let epoch = i16::try_from(answer.epoch).ok().filter(|e| *e >= 0 && answer.producer_id >= 0);
            let Some(epoch) = epoch else {
                let message = "ask for a producer id: the answer is out of range";
                return Err(ClientError::new(ErrorCode::Internal, message));
            };
            Identity::Known { id: answer.producer_id, epoch }
        } else {
            Identity::Anonymous
        };
        let shared = Shared::new(config, identity);
        let commands = Driver::start(client.clone(), shared.clone());
        Ok(Self { client, shared, commands })
    }

    /// The handle of a topic.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, or no answer within the client's deadline.
    pub async fn topic(&self, name: &str) -> Result<TopicHandle, ClientError> {
        let facts = self.client.inner.topology.topic(&self.client, name).await?;
        Ok(TopicHandle { state: self.shared.topic(name, facts) })
    }

    /// Sends what is waiting and returns when everything that was sent before is decided, one way or the other; the
    /// delivery time-out bounds that.
    pub async fn flush(&self) {
        let (tx, rx) = oneshot::channel();
        if self.commands.send(Command::Flush(tx)).await.is_ok() {
            // The driver ended after it decided everything.
            let _ = rx.await;
        }
    }

    /// Refuses new records, flushes, and ends. The counters stay readable.
    pub async fn close(&self) {
        let closing = Ordering::AcqRel;
        let _ = self.shared.state.compare_exchange(OPEN, CLOSED, closing, Ordering::Acquire);
        let (tx, rx) = oneshot::channel();
        if self.commands.send(Command::Close(Some(tx))).await.is_ok() {
            let _ = rx.await;
        }
    }

    /// Records by outcome.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let c = &self.shared.counting;
        let read = |n: &std::sync::atomic::AtomicU64| n.load(Ordering::Relaxed);
        let (acked, not_written, unknown) = (read(&c.acked), read(&c.not_written), read(&c.unknown));
        let sent = self.shared.partitions.lock().iter().map(|p| p.acc.lock().taken).sum();
        Counters { sent, acked, not_written, unknown, batch_retries: read(&c.batch_retries) }
    }

    #[cfg(test)]
    pub(crate) fn shared_free(&self) -> usize {
        self.shared.memory.available_permits()
    }
}
