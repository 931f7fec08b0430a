//! Two HTTP/2 connections per bookie: data and control, so that a fence never waits behind adds.

mod adds;
mod codes;
mod control;
mod data;

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use tidemill_proto::{
    bookie::{Identity, bookie_control_client::BookieControlClient, bookie_data_client::BookieDataClient},
    direct::Sending,
};
use tidemill_runtime::net;
use tidemill_types::{BookieId, EntryId, LedgerId};
use tonic::transport::{Channel, Endpoint};

use super::{AddStream, NoStream, ReadItem, ReadSpec, Target, Transport};
use crate::core::{AddAnswer, FenceAnswer, ReadAnswer, Unknown, repair::Held};

/// HTTP/2 stream window, bytes.
const STREAM_WINDOW: u32 = 16 << 20;
/// HTTP/2 connection window, bytes.
const CONNECTION_WINDOW: u32 = 32 << 20;
/// Largest HTTP/2 frame, bytes.
const FRAME: u32 = 1 << 20;
/// Keep-alive interval and time-out.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// Largest message taken: a batch of reads with one largest entry on top.
const MAX_MESSAGE: usize = 80 << 20;

/// The data connection; adds go over it without a copy.
type DataClient = BookieDataClient<Sending<Channel>>;

#[derive(Clone)]
struct Pair {
    address: tidemill_types::Endpoint,
    data: Channel,
    control: Channel,
}

/// The product's transport. Cheap to clone.
#[derive(Clone, Default)]
pub struct GrpcTransport {
    pairs: Arc<Mutex<HashMap<BookieId, Pair>>>,
}

impl GrpcTransport {
    /// No connection yet; they are made when first needed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn pair(&self, t: &Target) -> Result<Pair, Unknown> {
        let mut pairs = self.pairs.lock();
        if let Some(p) = pairs.get(&t.bookie).filter(|p| p.address == t.endpoint) {
            return Ok(p.clone());
        }
        let host = if t.endpoint.host.contains(':') && !t.endpoint.host.starts_with('[') {
            format!("[{}]", t.endpoint.host)
        } else {
            t.endpoint.host.clone()
        };
        let e = Endpoint::from_shared(format!("http://{host}:{}", t.endpoint.port))
            .map_err(|_| Unknown::Refused)?
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true)
            .connect_timeout(KEEP_ALIVE);
        let pair = Pair { address: t.endpoint.clone(), data: net::lazy(&e), control: net::lazy(&e) };
        pairs.insert(t.bookie, pair.clone());
        Ok(pair)
    }

    fn data(&self, t: &Target) -> Result<DataClient, Unknown> {
        Ok(BookieDataClient::new(Sending(self.pair(t)?.data))
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE))
    }

    fn control(&self, t: &Target) -> Result<BookieControlClient<Channel>, Unknown> {
        Ok(BookieControlClient::new(self.pair(t)?.control)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE))
    }
}

fn identity(t: &Target) -> Identity {
    tidemill_proto::convert::identity(t.cluster, t.bookie, t.incarnation)
}

impl Transport for GrpcTransport {
    fn open_adds(&self, target: Target) -> BoxFuture<'static, Result<AddStream, NoStream>> {
        match self.data(&target) {
            Ok(client) => adds::open(client, target).boxed(),
            Err(e) => futures::future::ready(Err(NoStream(e))).boxed(),
        }
    }

    fn read(&self, target: Target, spec: ReadSpec) -> BoxFuture<'static, Vec<ReadItem>> {
        match self.data(&target) {
            Ok(client) => data::read(client, target, spec).boxed(),
            Err(e) => futures::future::ready(vec![(spec.first, ReadAnswer::Unknown(e))]).boxed(),
        }
    }

    fn fence(&self, target: Target, ledgers: Vec<LedgerId>) -> BoxFuture<'static, Vec<FenceAnswer>> {
        match self.control(&target) {
            Ok(client) => control::fence(client, target, ledgers).boxed(),
            Err(e) => futures::future::ready(vec![FenceAnswer::Unknown(e); ledgers.len()]).boxed(),
        }
    }

    fn recovery_add(&self, target: Target, entries: Vec<Bytes>) -> BoxFuture<'static, Vec<AddAnswer>> {
        match self.control(&target) {
            Ok(client) => control::recovery_add(client, target, entries).boxed(),
            Err(e) => futures::future::ready(vec![AddAnswer::Unknown(e); entries.len()]).boxed(),
        }
    }

    fn read_lac(
        &self,
        target: Target,
        ledger: LedgerId,
        above: Option<EntryId>,
        wait: Duration,
    ) -> BoxFuture<'static, FenceAnswer> {
        match self.control(&target) {
            Ok(client) => control::read_lac(client, target, ledger, above, wait).boxed(),
            Err(e) => futures::future::ready(FenceAnswer::Unknown(e)).boxed(),
        }
    }

    fn write_lac(&self, target: Target, ledger: LedgerId, lac: EntryId) -> BoxFuture<'static, bool> {
        match self.control(&target) {
            Ok(client) => control::write_lac(client, target, ledger, lac).boxed(),
            Err(_) => futures::future::ready(false).boxed(),
        }
    }

    fn ranges(
        &self,
        target: Target,
        ledger: LedgerId,
        first: EntryId,
        last: EntryId,
    ) -> BoxFuture<'static, Held> {
        match self.control(&target) {
            Ok(client) => control::ranges(client, target, ledger, first, last).boxed(),
            Err(_) => futures::future::ready(Held::Unknown).boxed(),
        }
    }
}
