//! What the driver asks of bookies. gRPC implements it; tests put bookies of the model's kind behind it.

mod grpc;

use std::time::Duration;

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use tidemill_types::{BookieId, ClusterId, Endpoint, EntryId, Incarnation, LedgerId};
use tokio::sync::mpsc;

pub use self::grpc::GrpcTransport;
use crate::core::{AddAnswer, FenceAnswer, ReadAnswer, Unknown, repair::Held};

/// Whom a request means (R26) and where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The cluster.
    pub cluster: ClusterId,
    /// The expected uuid.
    pub bookie: BookieId,
    /// The expected process.
    pub incarnation: Incarnation,
    /// Its address.
    pub endpoint: Endpoint,
}

/// An add on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireAdd {
    /// Unique on the stream; stands for the attempt (R10).
    pub request_id: u64,
    /// The encoded entry.
    pub entry: Bytes,
}

/// Its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireAck {
    /// Of the add.
    pub request_id: u64,
    /// What.
    pub answer: AddAnswer,
}

/// An open stream of adds. The end of `acks` is the end of the stream.
pub struct AddStream {
    /// The process that answered the opening.
    pub incarnation: Incarnation,
    /// Batches of adds of any ledgers; waits when the connection is full.
    pub adds: mpsc::Sender<Vec<WireAdd>>,
    /// Batches of answers, in any order.
    pub acks: BoxStream<'static, Vec<WireAck>>,
}

/// Entries to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadSpec {
    /// The ledger.
    pub ledger: LedgerId,
    /// First entry.
    pub first: EntryId,
    /// Last entry, inclusive.
    pub last: EntryId,
    /// Stop after so many bytes (at least one entry).
    pub max_bytes: u32,
    /// Header and envelope only.
    pub header_only: bool,
    /// With the fence flag: each entry is answered.
    pub fence: bool,
}

/// The answer about one entry; bytes are not checked yet.
pub type ReadItem = (EntryId, ReadAnswer<Bytes>);

/// Why there is no stream. Always an unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no stream: {0:?}")]
pub struct NoStream(pub Unknown);

/// Calls to bookies.
///
/// # Contract
/// - An explicit negative MUST be passed on only when the bookie of `target` said it; every failure on the way is
///   [`Unknown`] (1.1).
/// - Every future MUST be cancel-safe in the sense that dropping it only loses the answer.
pub trait Transport: Send + Sync + 'static {
    /// Opens the stream of adds on the data connection.
    fn open_adds(&self, target: Target) -> BoxFuture<'static, Result<AddStream, NoStream>>;

    /// Reads entries on the data connection. Answers come in order of entries; the first is about `first`.
    fn read(&self, target: Target, spec: ReadSpec) -> BoxFuture<'static, Vec<ReadItem>>;

    /// Fences ledgers on the control connection; one answer each, same order.
    fn fence(&self, target: Target, ledgers: Vec<LedgerId>) -> BoxFuture<'static, Vec<FenceAnswer>>;

    /// Recovery adds on the control connection; one answer each, same order.
    fn recovery_add(&self, target: Target, entries: Vec<Bytes>) -> BoxFuture<'static, Vec<AddAnswer>>;

    /// The bookie's LAC of a ledger, without fencing; with `above` it waits for a higher one for at most `wait`.
    fn read_lac(
        &self,
        target: Target,
        ledger: LedgerId,
        above: Option<EntryId>,
        wait: Duration,
    ) -> BoxFuture<'static, FenceAnswer>;

    /// Tells a bookie the LAC of a ledger without an entry; true once it is durable there.
    fn write_lac(&self, target: Target, ledger: LedgerId, lac: EntryId) -> BoxFuture<'static, bool>;

    /// Which entries between `first` and `last` the bookie holds. A transport that cannot ask knows nothing.
    fn ranges(
        &self,
        target: Target,
        ledger: LedgerId,
        first: EntryId,
        last: EntryId,
    ) -> BoxFuture<'static, Held> {
        let _ = (target, ledger, first, last);
        Box::pin(std::future::ready(Held::Unknown))
    }
}
