//! Listening sockets with errors that say what to do.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use futures::Stream;
use tokio::net::TcpListener;

use super::Socket;
use crate::world::{self, Bound};

/// A socket that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr} ({what}): {why}")]
pub struct BindError {
    /// What the socket is for.
    pub what: String,
    /// The address.
    pub addr: SocketAddr,
    /// Why.
    pub why: String,
}

impl BindError {
    /// From an I/O error.
    #[must_use]
    pub fn other(what: &str, addr: SocketAddr, e: &io::Error) -> Self {
        let why = match e.kind() {
            io::ErrorKind::AddrInUse => {
                "the port is in use: end the other process or choose another port (0 lets the system choose)"
                    .to_owned()
            }
            io::ErrorKind::PermissionDenied => "not permitted: choose a port above 1023".to_owned(),
            io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
            _ => e.to_string(),
        };
        Self { what: what.to_owned(), addr, why }
    }
}

/// A bound socket.
pub struct Listener {
    addr: SocketAddr,
    inner: Inner,
}

enum Inner {
    Kernel(TcpListener),
    Simulated(Bound),
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Listener {
    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The connections that come in, with TCP_NODELAY.
    #[must_use]
    pub fn incoming(self) -> Incoming {
        Incoming { inner: self.inner }
    }
}

/// The connections of a listener; an error concerns one connection that was not made.
pub struct Incoming {
    inner: Inner,
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Incoming")
    }
}

impl Stream for Incoming {
    type Item = io::Result<Socket>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.inner {
            Inner::Kernel(listener) => listener.poll_accept(cx).map(|accepted| {
                Some(accepted.map(|(stream, _)| {
                    // Small answers must not wait for more of them; a socket that refuses the option is only slower.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "TCP_NODELAY refused");
                    }
                    Socket::Kernel(stream)
                }))
            }),
            Inner::Simulated(bound) => {
                bound.incoming.as_mut().poll_next(cx).map(|io| io.map(|io| io.map(Socket::Simulated)))
            }
        }
    }
}

/// Binds a TCP listener.
///
/// # Errors
/// [`BindError`] with the reason in words.
pub async fn bind(what: &str, addr: SocketAddr) -> Result<Listener, BindError> {
    let bound = match world::current().map(|w| w.bind(addr)) {
        Some(binding) => binding.await.map(|b| Listener { addr: b.addr, inner: Inner::Simulated(b) }),
        None => TcpListener::bind(addr)
            .await
            .map(|l| Listener { addr: l.local_addr().unwrap_or(addr), inner: Inner::Kernel(l) }),
    };
    bound.map_err(|e| BindError::other(what, addr, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_says_so() {
        let first = bind("test", "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let e = bind("test", first.local_addr()).await.unwrap_err();
        assert!(e.to_string().contains("in use"), "{e}");
    }
}
