//! The gRPC transport against a server that speaks the bookie's protocol for the bookies of `fake`.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use tidemill_ledger::{
    LedgerClient, LedgerConfig, LedgerMeta, Recovered,
    core::{AddAnswer, FenceAnswer, ReadAnswer},
    transport::{GrpcTransport, ReadSpec, Target, Transport, WireAdd},
};
use tidemill_proto::{
    bookie::{
        self as pb, Code,
        bookie_control_server::{BookieControl, BookieControlServer},
        bookie_data_server::{BookieData, BookieDataServer},
    },
    convert,
};
use tidemill_types::{BookieId, Endpoint, EntryId, Incarnation, LedgerId, meta::Command};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, Streaming, transport::Server};

use super::fake::{CLUSTER, Cluster, FakeTransport};

#[derive(Clone)]
struct Front {
    bookie: BookieId,
    behind: Arc<FakeTransport>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Front {
    fn target(&self) -> Target {
        Target {
            cluster: CLUSTER,
            bookie: self.bookie,
            incarnation: Incarnation(1),
            endpoint: Endpoint { host: "behind".to_owned(), port: 1 },
        }
    }

    fn mine(&self, i: Option<&pb::Identity>) -> bool {
        i.and_then(|i| convert::parse_identity(i).ok()).is_some_and(|(c, b, n)| {
            (c, b) == (CLUSTER, self.bookie) && (n == Incarnation(1) || n == Incarnation(0))
        })
    }
}

fn add_code(a: AddAnswer) -> (Code, u32) {
    match a {
        AddAnswer::Ok => (Code::Ok, 0),
        AddAnswer::Fenced => (Code::Fenced, 0),
        AddAnswer::Conflict => (Code::Conflict, 0),
        AddAnswer::Overloaded { retry_after } => (Code::Overloaded, retry_after.as_millis() as u32),
        AddAnswer::Unknown(_) => (Code::Unknown, 0),
    }
}

#[tonic::async_trait]
impl BookieData for Front {
    type AddStream = Answers<pb::AddResponse>;
    type ReadStream = Answers<pb::ReadResponse>;

    async fn add(&self, r: Request<Streaming<pb::AddRequest>>) -> Result<Response<Self::AddStream>, Status> {
        let mut inbound = r.into_inner();
        let first = inbound.message().await?.ok_or_else(|| Status::invalid_argument("no hello"))?;
        assert!(first.hello.is_some());
        let stream = self.behind.open_adds(self.target()).await;
        let stream = stream.map_err(|_| Status::unavailable("down"))?;
        let adds = stream.adds;
        tokio::spawn(async move {
            while let Ok(Some(m)) = inbound.message().await {
                let batch = m
                    .adds
                    .into_iter()
                    .map(|a| WireAdd { request_id: a.request_id, entry: a.entry })
                    .collect();
                if adds.send(batch).await.is_err() {
                    return;
                }
            }
        });
        let hello = pb::AddResponse {
            hello: Some(convert::identity(CLUSTER, self.bookie, Incarnation(1))),
            results: vec![],
        };
        let acks = stream.acks.map(|batch| {
            let results = batch
                .into_iter()
                .map(|a| {
                    let (code, retry_after_ms) = add_code(a.answer);
                    pb::AddResult { request_id: a.request_id, code: code.into(), retry_after_ms }
                })
                .collect();
            Ok(pb::AddResponse { hello: None, results })
        });
        Ok(Response::new(Box::pin(futures::stream::iter([Ok(hello)]).chain(acks))))
    }

    async fn read(&self, r: Request<pb::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let r = r.into_inner();
        if !self.mine(r.identity.as_ref()) {
            let code = Code::WrongIdentity.into();
            let results = vec![pb::ReadResult { entry: r.first, code, bytes: Bytes::new() }];
            let one = futures::stream::iter([Ok(pb::ReadResponse { results })]);
            return Ok(Response::new(Box::pin(one)));
        }
        let spec = ReadSpec {
            ledger: LedgerId(r.ledger),
            first: EntryId(r.first),
            last: EntryId(r.last),
            max_bytes: r.max_bytes,
            header_only: r.header_only,
            fence: r.fence,
        };
        let items = self.behind.read(self.target(), spec).await;
        let answers = items.into_iter().map(|(e, a)| {
            let (code, bytes) = match a {
                ReadAnswer::Found(b) => (Code::Ok, b),
                ReadAnswer::Negative(_) => (Code::NoSuchEntry, Bytes::new()),
                ReadAnswer::Unknown(_) => (Code::Unknown, Bytes::new()),
            };
            Ok(pb::ReadResponse { results: vec![pb::ReadResult { entry: e.0, code: code.into(), bytes }] })
        });
        Ok(Response::new(Box::pin(futures::stream::iter(answers.collect::<Vec<_>>()))))
    }
}

fn not_used<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not used here"))
}

#[tonic::async_trait]
impl BookieControl for Front {
    async fn fence(&self, r: Request<pb::FenceRequest>) -> Result<Response<pb::FenceResponse>, Status> {
        let r = r.into_inner();
        let ids: Vec<LedgerId> = r.ledgers.into_iter().map(LedgerId).collect();
        let answers = if self.mine(r.identity.as_ref()) {
            self.behind.fence(self.target(), ids.clone()).await
        } else {
            vec![FenceAnswer::Unknown(tidemill_ledger::core::Unknown::WrongIdentity); ids.len()]
        };
        let results = ids.iter().zip(answers).map(|(l, a)| {
            let (code, lac) = match a {
                FenceAnswer::Confirmed { lac } => (Code::Ok, lac.0),
                FenceAnswer::Unknown(_) => (Code::WrongIdentity, -1),
            };
            pb::FenceResult { ledger: l.0, code: code.into(), lac }
        });
        Ok(Response::new(pb::FenceResponse { results: results.collect() }))
    }

    async fn recovery_add(
        &self,
        r: Request<pb::RecoveryAddRequest>,
    ) -> Result<Response<pb::RecoveryAddResponse>, Status> {
        let answers = self.behind.recovery_add(self.target(), r.into_inner().entries).await;
        let codes = answers.into_iter().map(|a| add_code(a).0.into()).collect();
        Ok(Response::new(pb::RecoveryAddResponse { codes }))
    }

    async fn read_lac(
        &self,
        r: Request<pb::ReadLacRequest>,
    ) -> Result<Response<pb::ReadLacResponse>, Status> {
        let ledger = LedgerId(r.into_inner().ledger);
        let (code, lac) = match self.behind.read_lac(self.target(), ledger, None, Duration::ZERO).await {
            FenceAnswer::Confirmed { lac } => (Code::Ok, lac.0),
            FenceAnswer::Unknown(_) => (Code::Unknown, -1),
        };
        Ok(Response::new(pb::ReadLacResponse { code: code.into(), lac }))
    }

    async fn write_lac(
        &self,
        r: Request<pb::WriteLacRequest>,
    ) -> Result<Response<pb::WriteLacResponse>, Status> {
        let r = r.into_inner();
        let ok = self.behind.write_lac(self.target(), LedgerId(r.ledger), EntryId(r.lac)).await;
        let code = if ok { Code::Ok } else { Code::Unknown };
        Ok(Response::new(pb::WriteLacResponse { code: code.into() }))
    }

    async fn list_ledgers(
        &self,
        _: Request<pb::ListLedgersRequest>,
    ) -> Result<Response<pb::ListLedgersResponse>, Status> {
        not_used()
    }

    async fn list_ranges(
        &self,
        _: Request<pb::ListRangesRequest>,
    ) -> Result<Response<pb::ListRangesResponse>, Status> {
        not_used()
    }

    async fn get_info(
        &self,
        _: Request<pb::GetInfoRequest>,
    ) -> Result<Response<pb::GetInfoResponse>, Status> {
        not_used()
    }

    async fn set_read_only(
        &self,
        _: Request<pb::SetReadOnlyRequest>,
    ) -> Result<Response<pb::SetReadOnlyResponse>, Status> {
        not_used()
    }

    async fn ping(&self, _: Request<pb::PingRequest>) -> Result<Response<pb::PingResponse>, Status> {
        not_used()
    }
}

/// Puts every bookie of the cluster behind a port and gives a client that knows the ports.
async fn over_grpc(c: &Cluster) -> LedgerClient {
    let mut ports = vec![];
    for b in &c.bookies {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        ports.push(listener.local_addr().unwrap().port());
        let front = Front { bookie: b.id, behind: c.transport.clone() };
        tokio::spawn(
            Server::builder()
                .add_service(BookieDataServer::new(front.clone()))
                .add_service(BookieControlServer::new(front))
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
    }
    c.meta.edit_table(|t| {
        for (b, port) in t.iter_mut().zip(&ports) {
            b.endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: *port };
        }
    });
    LedgerClient::new(c.meta.clone(), LedgerConfig::new(CLUSTER))
}

#[tokio::test]
async fn write_recover_and_read_over_grpc() {
    let c = Cluster::new(3);
    let client = over_grpc(&c).await;
    let w = client.open_writer(c.create(1, 3, 2));
    let handles: Vec<_> =
        (0..300).map(|_| w.append(b"e", &[Bytes::from(vec![1; 10_000])]).unwrap()).collect();
    for h in handles {
        h.await.unwrap();
    }
    let record = c.meta.record(w.ledger());
    assert!(client.read_lac(&record).await.unwrap() >= EntryId(-1));
    let Recovered::Decided(end) = client.recover(w.ledger()).await.unwrap() else { panic!("closed") };
    assert_eq!((end.close.last_entry, end.close.length), (EntryId(299), 300 * 10_001));
    let run = end.reader.read_range(EntryId(0), EntryId(299), 1 << 20).await.unwrap();
    assert!(run.len() > 50);
    assert_eq!(end.reader.read_head(EntryId(7)).await.unwrap().envelope, "e");
    c.meta.propose(Command::Close { close: end.close, epoch: None }).await.unwrap().unwrap();
    // The writer finds out at its next add.
    let mut events = w.events();
    let late = w.append(b"late", &[]).unwrap();
    assert_eq!(events.recv().await, Some(tidemill_ledger::WriterEvent::Fenced));
    assert_eq!(w.resolve(EntryId(299)).len(), 1);
    assert_eq!(late.await, Err(tidemill_ledger::AppendError::NotWritten));
}

#[tokio::test]
async fn a_cut_stream_is_opened_again_and_nothing_is_lost() {
    let c = Cluster::new(3);
    let client = over_grpc(&c).await;
    let w = client.open_writer(c.create(1, 3, 3));
    w.append(b"a", &[]).unwrap().await.unwrap();
    c.bookies[1].cut();
    let h = w.append(b"b", &[]).unwrap();
    c.bookies[1].back();
    h.await.unwrap();
    assert!(c.bookies.iter().all(|b| b.holds(w.ledger()) == [0, 1]));
}

/// R26: a stranger's answers are unknown.
#[tokio::test]
async fn another_identity_is_unknown() {
    let c = Cluster::new(2);
    let client = over_grpc(&c).await;
    drop(client);
    let table = c.meta.bookies().borrow().clone();
    let endpoint = table.get(c.bookies[1].id).unwrap().endpoint.clone();
    let stranger =
        Target { cluster: CLUSTER, bookie: c.bookies[0].id, incarnation: Incarnation(1), endpoint };
    let t = GrpcTransport::new();
    assert!(t.open_adds(stranger.clone()).await.is_err());
    let spec = ReadSpec {
        ledger: LedgerId(1),
        first: EntryId(0),
        last: EntryId(0),
        max_bytes: 1,
        header_only: false,
        fence: false,
    };
    let read = t.read(stranger.clone(), spec).await;
    assert!(matches!(read[0].1, ReadAnswer::Unknown(_)), "{read:?}");
    let fence = t.fence(stranger, vec![LedgerId(1)]).await;
    assert!(matches!(fence[0], FenceAnswer::Unknown(_)), "{fence:?}");
}
