//! The machine that the roles see: turmoil's network, and disks that take their time.

use std::{collections::HashMap, io, net::SocketAddr, sync::Arc, time::Duration};

use futures::StreamExt;
use parking_lot::Mutex;
use tidemill_runtime::world::{Answer, Bound, BoxIo, World};
use turmoil::net::{TcpListener, TcpStream};

/// How slow the disks are, by the runtime of the host. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Disks(Arc<Mutex<HashMap<tokio::runtime::Id, Delay>>>);

/// How long operations of one disk take.
#[derive(Clone, Debug, Default)]
pub struct Delay(Arc<Mutex<Pace>>);

#[derive(Debug, Default)]
struct Pace {
    rng: u64,
    usual_us: u64,
    extra: Duration,
}

impl Delay {
    /// A disk of this seed whose operations take up to `usual`.
    #[must_use]
    pub fn new(seed: u64, usual: Duration) -> Self {
        let usual_us = u64::try_from(usual.as_micros()).unwrap_or(0);
        Self(Arc::new(Mutex::new(Pace { rng: seed | 1, usual_us, extra: Duration::ZERO })))
    }

    /// Every operation takes so much longer.
    pub fn slow(&self, extra: Duration) {
        self.0.lock().extra = extra;
    }

    fn next(&self) -> Duration {
        let mut p = self.0.lock();
        // xorshift64.
        p.rng ^= p.rng << 13;
        p.rng ^= p.rng >> 7;
        p.rng ^= p.rng << 17;
        let usual = p.rng % (p.usual_us + 1);
        Duration::from_micros(usual) + p.extra
    }
}

impl Disks {
    /// The host that runs now has this disk.
    pub fn mine(&self, delay: Delay) {
        self.0.lock().insert(tokio::runtime::Handle::current().id(), delay);
    }
}

/// The simulated machine.
#[derive(Debug)]
pub struct Simulated {
    /// All disks.
    pub disks: Disks,
}

impl World for Simulated {
    fn bind(&self, addr: SocketAddr) -> Answer<Bound> {
        Box::pin(async move {
            let listener = TcpListener::bind(addr).await?;
            let addr = listener.local_addr()?;
            let incoming = futures::stream::unfold(listener, async |listener| {
                let io = listener.accept().await.map(|(stream, _)| Box::new(stream) as BoxIo);
                Some((io, listener))
            });
            Ok(Bound { addr, incoming: incoming.boxed() })
        })
    }

    fn connect(&self, host: String, port: u16) -> Answer<BoxIo> {
        Box::pin(async move {
            // A host that never was, or a name that nobody has, is refused; turmoil itself would panic.
            let stream = TcpStream::connect((host, port)).await.map_err(io::Error::other)?;
            Ok(Box::new(stream) as BoxIo)
        })
    }

    fn disk_delay(&self) -> Duration {
        let Ok(handle) = tokio::runtime::Handle::try_current() else { return Duration::ZERO };
        self.disks.0.lock().get(&handle.id()).map_or(Duration::ZERO, Delay::next)
    }
}
