//! One member of a quorum: the quorum's state machine and codec, no log. Faults are set by the test.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tidemill_meta_client::{MetaClient, MetaClientConfig};
use tidemill_metadata::{State, codec};
use tidemill_proto::{
    convert::{Details, status},
    meta::{
        ChangeMembersRequest, ChangeMembersResponse, InitializeRequest, InitializeResponse, LeaderHint,
        ProposeRequest, ProposeResponse, RaiseFeatureLevelRequest, RaiseFeatureLevelResponse, ReadRequest,
        ReadResponse, RenewRequest, RenewResponse, StatusRequest, StatusResponse, WatchEvent, WatchRequest,
        meta_server::{Meta, MetaServer},
        propose_response, read_response, renew_response, watch_event,
    },
};
use tidemill_runtime::{Health, Supervisor};
use tidemill_types::{
    ClusterId, Endpoint, ErrorCode, Incarnation, MemberId, MemberRole, RequestId, Revision, SessionId,
    meta::{Command, MemberSpec, Request as Sent, Watched},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, transport::Server};
use uuid::Uuid;

pub(crate) const CLUSTER: ClusterId = ClusterId(Uuid::from_u128(77));

/// What happens to the next proposal.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Applied, but the answer is lost.
    LoseAnswer,
    /// Not applied, and said so.
    NotReady,
    /// Sent to this address.
    Hint(String),
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) revision: u64,
    pub(crate) faults: VecDeque<Fault>,
    /// Proposals as they came.
    pub(crate) proposals: Vec<Sent>,
    events: Vec<Watched>,
    /// From-revisions of the watches that were opened.
    pub(crate) watches: Vec<u64>,
    streams: Vec<mpsc::Sender<Result<WatchEvent, Status>>>,
}

impl Inner {
    pub(crate) fn apply(&mut self, request: &Sent) -> tidemill_metadata::Applied {
        self.revision += 1;
        let applied = self.state.apply(Revision(self.revision), request);
        if !applied.changes.is_empty() {
            let w = Watched { revision: Revision(self.revision), changes: applied.changes.clone() };
            let event = changes(&w);
            self.streams.retain(|tx| tx.try_send(Ok(event.clone())).is_ok());
            self.events.push(w);
        }
        applied
    }

    /// Breaks all watches off.
    pub(crate) fn cut_watches(&mut self) {
        self.streams.clear();
    }
}

fn changes(w: &Watched) -> WatchEvent {
    let bytes = codec::encode_watched(w).unwrap();
    WatchEvent { event: Some(watch_event::Event::Changes(bytes.into())), more: false }
}

#[derive(Clone, Default)]
pub(crate) struct Member {
    pub(crate) inner: Arc<Mutex<Inner>>,
}

#[tonic::async_trait]
impl Meta for Member {
    type WatchStream = ReceiverStream<Result<WatchEvent, Status>>;

    async fn propose(&self, r: Request<ProposeRequest>) -> Result<Response<ProposeResponse>, Status> {
        let request = codec::decode_request(&r.into_inner().request).unwrap();
        let mut s = self.inner.lock().unwrap();
        s.proposals.push(request.clone());
        let fault = s.faults.pop_front();
        let (outcome, revision) = match fault {
            Some(Fault::Hint(address)) => {
                (propose_response::Outcome::Leader(LeaderHint { node: 1, address }), 0)
            }
            Some(Fault::NotReady) => return Err(status(ErrorCode::NotReady, "later", Details::default())),
            other => {
                let applied = s.apply(&request);
                if other.is_some() {
                    return Err(Status::unavailable("the connection broke"));
                }
                (
                    propose_response::Outcome::Result(codec::encode_result(&applied.result).unwrap()),
                    s.revision,
                )
            }
        };
        Ok(Response::new(ProposeResponse { outcome: Some(outcome), revision }))
    }

    async fn read(&self, r: Request<ReadRequest>) -> Result<Response<ReadResponse>, Status> {
        let query = codec::decode_query(&r.into_inner().query).unwrap();
        let s = self.inner.lock().unwrap();
        let answer = codec::encode_answer(&s.state.query(&query)).unwrap();
        let outcome = Some(read_response::Outcome::Answer(answer));
        Ok(Response::new(ReadResponse { outcome, revision: s.revision }))
    }

    async fn watch(&self, r: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let from = r.into_inner().from_revision;
        let (tx, rx) = mpsc::channel(64);
        let mut s = self.inner.lock().unwrap();
        s.watches.push(from);
        if from == 0 {
            let view = codec::encode_view(&s.state.view()).unwrap();
            let event = WatchEvent { event: Some(watch_event::Event::View(view.into())), more: false };
            tx.try_send(Ok(event)).unwrap();
        } else {
            for w in s.events.iter().filter(|w| w.revision.0 > from) {
                tx.try_send(Ok(changes(w))).unwrap();
            }
        }
        s.streams.push(tx);
        Ok(Response::new(ReceiverStream::new(rx)))
    }

    async fn renew(&self, r: Request<RenewRequest>) -> Result<Response<RenewResponse>, Status> {
        let s = self.inner.lock().unwrap();
        let outcome = if s.state.is_live(SessionId(r.into_inner().session)) {
            renew_response::Outcome::TtlMs(3_000)
        } else {
            renew_response::Outcome::Expired(true)
        };
        Ok(Response::new(RenewResponse {
            outcome: Some(outcome),
            quorum_wall_ms: 1_234,
            ..RenewResponse::default()
        }))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        Ok(Response::new(StatusResponse { role: "leader".into(), ..StatusResponse::default() }))
    }

    async fn initialize(
        &self,
        _: Request<InitializeRequest>,
    ) -> Result<Response<InitializeResponse>, Status> {
        Err(Status::unimplemented("not part of these tests"))
    }

    async fn change_members(
        &self,
        _: Request<ChangeMembersRequest>,
    ) -> Result<Response<ChangeMembersResponse>, Status> {
        Err(Status::unimplemented("not part of these tests"))
    }

    async fn raise_feature_level(
        &self,
        _: Request<RaiseFeatureLevelRequest>,
    ) -> Result<Response<RaiseFeatureLevelResponse>, Status> {
        Err(Status::unimplemented("not part of these tests"))
    }
}

/// A member with an initialised cluster, serving.
pub(crate) async fn serve() -> (Member, SocketAddr) {
    let member = Member::default();
    let init =
        Sent { session: SessionId::NONE, request: RequestId(0), command: Command::Init { cluster: CLUSTER } };
    member.inner.lock().unwrap().apply(&init).result.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let service = MetaServer::new(member.clone());
    tokio::spawn(
        Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)),
    );
    (member, addr)
}

/// A client of these addresses that gives up soon.
pub(crate) fn client(addresses: &[String]) -> MetaClient {
    let config = MetaClientConfig {
        give_up_after: std::time::Duration::from_millis(600),
        session_renewal: std::time::Duration::from_millis(20),
        ..MetaClientConfig::new(addresses.to_vec())
    };
    MetaClient::connect(config, &Supervisor::new(Health::new()))
}

/// A broker that opens its session.
pub(crate) fn broker(incarnation: u64) -> MemberSpec {
    MemberSpec {
        cluster: None,
        id: MemberId(Uuid::from_u128(5)),
        role: MemberRole::Broker,
        name: "broker-0".into(),
        incarnation: Incarnation(incarnation),
        endpoint: Endpoint { host: "127.0.0.1".into(), port: 1 },
        zone: String::new(),
        free_bytes: 0,
        read_only: false,
    }
}
