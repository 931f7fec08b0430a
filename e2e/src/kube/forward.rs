//! A way into the cluster from outside.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::wait::until;

/// A running `kubectl port-forward`; dropping it ends it.
#[derive(Debug)]
pub struct Forward {
    child: Child,
    port: u16,
}

impl Forward {
    /// Forwards a local port to port 7450 of a pod or Service (`pod/NAME`, `service/NAME`).
    ///
    /// # Errors
    /// It does not take connections in time.
    pub fn start(namespace: &str, target: &str) -> Result<Self> {
        // A port that is free now; kubectl itself cannot tell which one it chose before it has printed it.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new("kubectl")
            .args(["port-forward", "-n", namespace, target, &format!("{port}:7450")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("kubectl port-forward")?;
        let forward = Self { child, port };
        until("the port-forward", Duration::from_secs(30), || {
            Ok(Some(TcpStream::connect(("127.0.0.1", port))?))
        })?;
        Ok(forward)
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
