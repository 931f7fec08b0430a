//! Listening sockets with errors that say what to do.

use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

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

/// Binds a TCP listener.
///
/// # Errors
/// [`BindError`] with the reason in words.
pub async fn bind(what: &str, addr: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(addr).await.map_err(|e| BindError::other(what, addr, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_says_so() {
        let first = bind("test", "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let e = bind("test", first.local_addr().unwrap()).await.unwrap_err();
        assert!(e.to_string().contains("in use"), "{e}");
    }
}
