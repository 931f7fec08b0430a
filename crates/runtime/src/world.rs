//! What a simulation puts in place of the machine: its network, and one thread instead of many.
//!
//! A simulated cluster runs on one thread, and that thread is its machine: like the simulator itself, which keeps its hosts there, the
//! choice is a property of the thread and not a parameter of every call on the way to a socket. Outside of a simulation nobody enters
//! a world, and everything is the kernel's. The disk and the clocks, which differ from host to host, are given to the roles as values.

use std::{cell::RefCell, future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use futures::stream::BoxStream;
use tokio::io::{AsyncRead, AsyncWrite};

/// A simulated connection.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection of a simulated network.
pub type BoxIo = Box<dyn Io>;
/// An answer of a simulated network.
pub type Answer<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// A bound socket of a simulated network.
pub struct Bound {
    /// Where it listens.
    pub addr: SocketAddr,
    /// The connections that come in.
    pub incoming: BoxStream<'static, io::Result<BoxIo>>,
}

/// A simulated machine.
pub trait World: Send + Sync {
    /// Listens on an address of the host that runs now.
    fn bind(&self, addr: SocketAddr) -> Answer<Bound>;
    /// Connects the host that runs now to another.
    fn connect(&self, host: String, port: u16) -> Answer<BoxIo>;
    /// How long the disk of the host that runs now takes for its next operation.
    fn disk_delay(&self) -> Duration;
}

thread_local! {
    static WORLD: RefCell<Option<Arc<dyn World>>> = const { RefCell::new(None) };
}

/// From now on everything on this thread lives in `world`. For simulations alone.
pub fn enter(world: Arc<dyn World>) {
    WORLD.with(|w| *w.borrow_mut() = Some(world));
}

/// The world of this thread; nothing on a real machine.
#[must_use]
pub fn current() -> Option<Arc<dyn World>> {
    WORLD.with(|w| w.borrow().clone())
}

/// Whether this thread is a simulation: then nothing may start threads or wait for the kernel.
#[must_use]
pub fn simulated() -> bool {
    WORLD.with(|w| w.borrow().is_some())
}

/// Waits as long as a simulated disk takes; not at all on a real machine, whose disk makes its callers wait by itself.
pub async fn disk_delay() {
    let delay = current().map_or(Duration::ZERO, |w| w.disk_delay());
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
