//! Channels to others. Whoever connects makes its [`Endpoint`] with its own settings and hands it in here.

use std::io;

use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint, Error, Uri};
use tower::service_fn;

use crate::world::{self, BoxIo};

/// A channel that connects when it is used, and again after an error.
#[must_use]
pub fn lazy(endpoint: &Endpoint) -> Channel {
    if world::simulated() {
        endpoint.connect_with_connector_lazy(service_fn(dial))
    } else {
        endpoint.connect_lazy()
    }
}

/// A channel that is connected.
///
/// # Errors
/// The connection was not made: nothing was sent.
pub async fn connect(endpoint: &Endpoint) -> Result<Channel, Error> {
    if world::simulated() {
        endpoint.connect_with_connector(service_fn(dial)).await
    } else {
        endpoint.connect().await
    }
}

/// Connects over the simulated network.
async fn dial(uri: Uri) -> io::Result<TokioIo<BoxIo>> {
    let refuse = |why| io::Error::new(io::ErrorKind::InvalidInput, format!("{uri}: {why}"));
    let world = world::current().ok_or_else(|| refuse("no simulation on this thread"))?;
    let host = uri.host().ok_or_else(|| refuse("no host"))?.to_owned();
    let port = uri.port_u16().ok_or_else(|| refuse("no port"))?;
    let answer = world.connect(host, port);
    drop(world);
    answer.await.map(TokioIo::new)
}
