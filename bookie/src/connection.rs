//! One TCP connection: its budgets travel with every request that comes over it.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use tidemill_runtime::net::Socket;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

/// Bytes that one permit of the read budget stands for.
const READ_UNIT: usize = 1 << 10;

/// What one connection may have under way. Clones share the budgets.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    adds: Arc<AddBudget>,
    reads: Arc<Semaphore>,
    read_units: u32,
}

#[derive(Debug)]
struct AddBudget {
    used: AtomicUsize,
    limit: usize,
}

/// Bytes of accepted adds; given back when dropped.
#[derive(Debug)]
pub(crate) struct AddPermit {
    budget: Arc<AddBudget>,
    bytes: usize,
}

impl Budgets {
    /// Fresh budgets in bytes.
    pub(crate) fn new(add_bytes: usize, read_bytes: usize) -> Self {
        let read_units = u32::try_from(read_bytes.div_ceil(READ_UNIT)).unwrap_or(u32::MAX >> 4).max(1);
        Self {
            adds: Arc::new(AddBudget { used: AtomicUsize::new(0), limit: add_bytes }),
            reads: Arc::new(Semaphore::new(read_units as usize)),
            read_units,
        }
    }

    /// Room for an add of so many bytes, or nothing: then the answer is `Overloaded`. A connection that has nothing under
    /// way may always send one.
    pub(crate) fn try_add(&self, bytes: usize) -> Option<AddPermit> {
        let fits = |used: usize| (used == 0 || used + bytes <= self.adds.limit).then_some(used + bytes);
        self.adds.used.try_update(Ordering::AcqRel, Ordering::Acquire, fits).ok()?;
        Some(AddPermit { budget: self.adds.clone(), bytes })
    }

    /// Waits for room for an answer of so many bytes (at most the whole budget). `None` never happens while the connection
    /// lives: the semaphore is not closed.
    pub(crate) async fn read(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(READ_UNIT)).unwrap_or(u32::MAX).clamp(1, self.read_units);
        self.reads.clone().acquire_many_owned(units).await.ok()
    }
}

impl Drop for AddPermit {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A TCP stream that carries its budgets and can be cut from afar.
#[derive(Debug)]
pub(crate) struct Connection {
    io: Socket,
    budgets: Budgets,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Connection {
    /// Takes an accepted stream.
    ///
    /// The server keeps connections in tasks of their own, which outlive it; `cut` ends them.
    pub(crate) fn new(io: Socket, budgets: Budgets, cut: CancellationToken) -> Self {
        Self { io, budgets, cut: Box::pin(cut.cancelled_owned()) }
    }
}

impl Connected for Connection {
    type ConnectInfo = Budgets;

    fn connect_info(&self) -> Budgets {
        self.budgets.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_are_bounded_and_one_large_add_always_fits() {
        let b = Budgets::new(100, 1);
        let large = b.try_add(1000).unwrap();
        assert!(b.try_add(1).is_none());
        drop(large);
        let (x, y) = (b.try_add(60).unwrap(), b.clone().try_add(40).unwrap());
        assert!(b.try_add(1).is_none());
        drop(x);
        assert!(b.try_add(60).is_some());
        drop(y);
    }

    #[tokio::test]
    async fn reads_wait_and_are_never_larger_than_the_budget() {
        let b = Budgets::new(1, 4 << 10);
        let all = b.read(1 << 30).await.unwrap();
        let mut second = Box::pin(b.read(1));
        assert!(futures::poll!(&mut second).is_pending());
        drop(all);
        assert!(second.await.is_some());
    }
}
