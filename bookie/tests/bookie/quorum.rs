//! The quorum's service over its real state machine, without raft: a place where answers can be withheld and sessions ended
//! at will, which a real quorum does not offer.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures::Stream;
use parking_lot::Mutex;
use tidemill_metadata::{State, decode_query, decode_request, encode_answer, encode_result};
use tidemill_proto::convert;
use tidemill_proto::meta::{
    ChangeMembersRequest, ChangeMembersResponse, InitializeRequest, InitializeResponse, ProposeRequest,
    ProposeResponse, RaiseFeatureLevelRequest, RaiseFeatureLevelResponse, ReadRequest, ReadResponse,
    RenewRequest, RenewResponse, StatusRequest, StatusResponse, WatchEvent, WatchRequest,
    meta_server::{Meta, MetaServer},
    propose_response, read_response, renew_response,
};
use tidemill_runtime::net;
use tidemill_types::{
    ClusterId, ErrorCode, MemberId, RequestId, Revision, SessionId,
    meta::{Answer, BookieReport, Command, Query, Rejection, Reply, Request as MetaRequest},
};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status, transport::Server};
use uuid::Uuid;

use crate::shelf::Addresses;

/// A quorum of one.
#[derive(Clone)]
pub(crate) struct Quorum {
    pub(crate) addr: SocketAddr,
    pub(crate) cluster: ClusterId,
    inner: Arc<Inner>,
    _stop: Arc<DropGuard>,
}

struct Inner {
    state: Mutex<State>,
    revision: AtomicU64,
    reachable: AtomicBool,
    lists_nothing: AtomicBool,
    hides_members: AtomicBool,
    ledger_reads: AtomicU64,
    /// Reads of single ledgers wait while this is true.
    holds_ledger_reads: watch::Sender<bool>,
}

impl Inner {
    fn apply(&self, request: &MetaRequest) -> (Result<Reply, Rejection>, u64) {
        let mut state = self.state.lock();
        let revision = self.revision.fetch_add(1, Ordering::SeqCst) + 1;
        let applied = state.apply(Revision(revision), request);
        (applied.result, revision)
    }
}

impl Quorum {
    /// Serves; initialised.
    pub(crate) async fn start() -> Self {
        let q = Self::uninitialised().await;
        q.command(Command::Init { cluster: q.cluster }).unwrap();
        q
    }

    /// Serves without a cluster id.
    pub(crate) async fn uninitialised() -> Self {
        let listener = net::bind("quorum", "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let addr = listener.local_addr();
        let inner = Arc::new(Inner {
            state: Mutex::new(State::new()),
            revision: AtomicU64::new(0),
            reachable: AtomicBool::new(true),
            lists_nothing: AtomicBool::new(false),
            hides_members: AtomicBool::new(false),
            ledger_reads: AtomicU64::new(0),
            holds_ledger_reads: watch::Sender::new(false),
        });
        let stop = CancellationToken::new();
        let service = MetaServer::new(Service(inner.clone()));
        let served = Server::builder()
            .add_service(service)
            .serve_with_incoming_shutdown(listener.incoming(), stop.clone().cancelled_owned());
        tokio::spawn(served);
        let cluster = ClusterId(Uuid::new_v4());
        Self { addr, cluster, inner, _stop: Arc::new(stop.drop_guard()) }
    }

    /// A command of the quorum itself.
    pub(crate) fn command(&self, command: Command) -> Result<Reply, Rejection> {
        self.inner.apply(&MetaRequest { session: SessionId::NONE, request: RequestId(0), command }).0
    }

    /// Looks into the state.
    pub(crate) fn look<T>(&self, f: impl FnOnce(&State) -> T) -> T {
        f(&self.inner.state.lock())
    }

    /// Whether it answers.
    pub(crate) fn reachable(&self, yes: bool) {
        self.inner.reachable.store(yes, Ordering::SeqCst);
    }

    /// Listings come back empty.
    pub(crate) fn lists_nothing(&self, yes: bool) {
        self.inner.lists_nothing.store(yes, Ordering::SeqCst);
    }

    /// The table of members comes back empty, as from a quorum that has never heard of this boot.
    pub(crate) fn hides_members(&self, yes: bool) {
        self.inner.hides_members.store(yes, Ordering::SeqCst);
    }

    /// Reads of single ledgers so far.
    pub(crate) fn ledger_reads(&self) -> u64 {
        self.inner.ledger_reads.load(Ordering::SeqCst)
    }

    /// Reads of single ledgers wait.
    pub(crate) fn hold_ledger_reads(&self, yes: bool) {
        self.inner.holds_ledger_reads.send_replace(yes);
    }

    /// Ends a member's session as the leader does when it was not renewed in time.
    pub(crate) fn expire(&self, member: MemberId) {
        let session = self.look(|s| s.member(member).and_then(|m| m.session)).unwrap();
        self.command(Command::ExpireSession { session, member }).unwrap();
    }
}

impl Addresses for Quorum {
    fn addresses(&self) -> Vec<String> {
        vec![self.addr.to_string()]
    }
}

#[derive(Clone)]
struct Service(Arc<Inner>);

impl Service {
    fn up(&self) -> Result<(), Status> {
        if self.0.reachable.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err(Status::unavailable("out of reach"))
        }
    }

    fn same_cluster(&self, named: &[u8]) -> Result<(), Status> {
        let have = self.0.state.lock().cluster();
        match have {
            Some(have) if !named.is_empty() && named != have.0.as_bytes() => Err(convert::status(
                ErrorCode::WrongCluster,
                &format!("this is cluster {have}"),
                convert::Details::default(),
            )),
            _ => Ok(()),
        }
    }
}

#[tonic::async_trait]
impl Meta for Service {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, Status>> + Send>>;

    async fn propose(&self, r: Request<ProposeRequest>) -> Result<Response<ProposeResponse>, Status> {
        self.up()?;
        let r = r.into_inner();
        self.same_cluster(&r.cluster)?;
        let request = decode_request(&r.request).map_err(|e| Status::invalid_argument(e.to_string()))?;
        let (result, revision) = self.0.apply(&request);
        let result = encode_result(&result).unwrap();
        let outcome = Some(propose_response::Outcome::Result(result));
        Ok(Response::new(ProposeResponse { outcome, revision }))
    }

    async fn read(&self, r: Request<ReadRequest>) -> Result<Response<ReadResponse>, Status> {
        self.up()?;
        let r = r.into_inner();
        self.same_cluster(&r.cluster)?;
        let query = decode_query(&r.query).map_err(|e| Status::invalid_argument(e.to_string()))?;
        if matches!(query, Query::Ledger(_)) {
            self.0.ledger_reads.fetch_add(1, Ordering::SeqCst);
            let mut held = self.0.holds_ledger_reads.subscribe();
            held.wait_for(|h| !h).await.unwrap();
        }
        let (mut answer, revision) = {
            let state = self.0.state.lock();
            (state.query(&query), state.revision().0)
        };
        if matches!(query, Query::LedgersOf { .. }) && self.0.lists_nothing.load(Ordering::SeqCst) {
            answer = Answer::Ledgers(Vec::new());
        }
        if matches!(query, Query::Members) && self.0.hides_members.load(Ordering::SeqCst) {
            answer = Answer::Members(Vec::new());
        }
        let answer = encode_answer(&answer).unwrap();
        let outcome = Some(read_response::Outcome::Answer(answer));
        Ok(Response::new(ReadResponse { outcome, revision }))
    }

    async fn renew(&self, r: Request<RenewRequest>) -> Result<Response<RenewResponse>, Status> {
        self.up()?;
        let r = r.into_inner();
        let session = SessionId(r.session);
        let bookie = MemberId(Uuid::from_slice(&r.member).unwrap());
        if !self.0.state.lock().is_live(session) {
            let outcome = Some(renew_response::Outcome::Expired(true));
            return Ok(Response::new(RenewResponse { outcome, ..RenewResponse::default() }));
        }
        if let Some((_, positions)) = r.positions.split_first() {
            let report = BookieReport {
                bookie,
                session,
                lanes: postcard::from_bytes(positions).unwrap(),
                free_bytes: r.free_bytes,
            };
            let command = Command::ReportBookies(vec![report]);
            let request = MetaRequest { session: SessionId::NONE, request: RequestId(0), command };
            self.0.apply(&request).0.unwrap();
        }
        let outcome = Some(renew_response::Outcome::TtlMs(3_000));
        Ok(Response::new(RenewResponse { outcome, ..RenewResponse::default() }))
    }

    async fn watch(&self, _: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("no watch here"))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        Err(Status::unimplemented("no status here"))
    }

    async fn initialize(
        &self,
        _: Request<InitializeRequest>,
    ) -> Result<Response<InitializeResponse>, Status> {
        Err(Status::unimplemented("initialised by the test"))
    }

    async fn change_members(
        &self,
        _: Request<ChangeMembersRequest>,
    ) -> Result<Response<ChangeMembersResponse>, Status> {
        Err(Status::unimplemented("one member only"))
    }

    async fn raise_feature_level(
        &self,
        _: Request<RaiseFeatureLevelRequest>,
    ) -> Result<Response<RaiseFeatureLevelResponse>, Status> {
        Err(Status::unimplemented("not part of these tests"))
    }
}
