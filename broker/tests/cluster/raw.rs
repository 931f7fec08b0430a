//! Clients without a deadline of their own: only the broker judges the header.

use std::task::{Context, Poll};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, Uri};
use hyper::{body::Incoming, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tidemill_proto::v1::{admin_client::AdminClient, producer_client::ProducerClient};
use tonic::body::Body;

use crate::harness::Broker;

/// One HTTP/2 connection.
#[derive(Clone)]
pub(crate) struct Connection(pub(crate) SendRequest<Body>);

impl tower::Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Response<Incoming>, hyper::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.send_request(request).boxed()
    }
}

pub(crate) async fn connect(b: &Broker) -> (Connection, Uri) {
    let tcp = tokio::net::TcpStream::connect(b.handle.addr()).await.unwrap();
    let (send, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp)).await.unwrap();
    tokio::spawn(connection);
    (Connection(send), format!("http://{}", b.address).parse().unwrap())
}

pub(crate) async fn producer(b: &Broker) -> ProducerClient<Connection> {
    let (connection, origin) = connect(b).await;
    ProducerClient::with_origin(connection, origin)
}

pub(crate) async fn admin(b: &Broker) -> AdminClient<Connection> {
    let (connection, origin) = connect(b).await;
    AdminClient::with_origin(connection, origin)
}
