//! Answers of one add stream on their way out: what gathers between two polls of the transport goes as one message.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures::{Stream, task::AtomicWaker};
use parking_lot::Mutex;
use tidemill_proto::bookie::{AddResponse, AddResult, Identity};
use tokio::sync::Notify;
use tonic::Status;

/// Most results in one message: about 24 bytes each.
const RESULTS_PER_MESSAGE: usize = 16 << 10;
/// Past so many waiting results no further adds are read from the stream: the caller does not take its answers.
const MAX_WAITING: usize = 64 << 10;

/// Where answers are put; clones feed the same stream.
#[derive(Clone, Debug)]
pub(crate) struct Acks {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    waker: AtomicWaker,
    /// Adds accepted and not answered yet.
    open: AtomicUsize,
    /// No further adds come in: the stream ends when the last answer is out.
    ended: AtomicBool,
    /// The caller is gone.
    gone: AtomicBool,
    drained: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    hello: Option<Identity>,
    results: Vec<AddResult>,
    error: Option<Status>,
}

/// The response stream.
#[derive(Debug)]
pub(crate) struct AckStream {
    shared: Arc<Shared>,
    failed: bool,
}

/// An empty pair.
pub(crate) fn acks() -> (Acks, AckStream) {
    let shared = Arc::new(Shared {
        waiting: Mutex::new(Waiting::default()),
        waker: AtomicWaker::new(),
        open: AtomicUsize::new(0),
        ended: AtomicBool::new(false),
        gone: AtomicBool::new(false),
        drained: Notify::new(),
    });
    (Acks { shared: shared.clone() }, AckStream { shared, failed: false })
}

impl Acks {
    /// The opening answer.
    pub(crate) fn hello(&self, identity: Identity) {
        self.shared.waiting.lock().hello = Some(identity);
        self.shared.waker.wake();
    }

    /// Answers that were decided at once.
    pub(crate) fn put(&self, results: Vec<AddResult>) {
        if results.is_empty() {
            return;
        }
        self.shared.waiting.lock().results.extend(results);
        self.shared.waker.wake();
    }

    /// So many adds will be answered later by [`Self::put_opened`].
    pub(crate) fn open(&self, adds: usize) {
        self.shared.open.fetch_add(adds, Ordering::AcqRel);
    }

    /// Answers to adds that were announced by [`Self::open`].
    pub(crate) fn put_opened(&self, results: Vec<AddResult>) {
        let n = results.len();
        self.put(results);
        self.shared.open.fetch_sub(n, Ordering::AcqRel);
        self.shared.waker.wake();
    }

    /// No further adds come in; the stream ends after the last answer.
    pub(crate) fn end(&self) {
        self.shared.ended.store(true, Ordering::Release);
        self.shared.waker.wake();
    }

    /// Ends the stream with an error, after the answers that are there.
    pub(crate) fn fail(&self, status: Status) {
        self.shared.waiting.lock().error = Some(status);
        self.end();
    }

    /// Waits while the caller does not take its answers. `false` when it is gone.
    pub(crate) async fn room(&self) -> bool {
        loop {
            let drained = self.shared.drained.notified();
            if self.shared.gone.load(Ordering::Acquire) {
                return false;
            }
            if self.shared.waiting.lock().results.len() < MAX_WAITING {
                return true;
            }
            drained.await;
        }
    }
}

impl Stream for AckStream {
    type Item = Result<AddResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.failed {
            return Poll::Ready(None);
        }
        self.shared.waker.register(cx.waker());
        // Read before the results: whoever counts down has put its results first.
        let ended =
            self.shared.ended.load(Ordering::Acquire) && self.shared.open.load(Ordering::Acquire) == 0;
        let mut waiting = self.shared.waiting.lock();
        let hello = waiting.hello.take();
        if hello.is_some() || !waiting.results.is_empty() {
            let n = waiting.results.len().min(RESULTS_PER_MESSAGE);
            let rest = waiting.results.split_off(n);
            let results = std::mem::replace(&mut waiting.results, rest);
            drop(waiting);
            self.shared.drained.notify_one();
            return Poll::Ready(Some(Ok(AddResponse { hello, results })));
        }
        let error = if ended { waiting.error.take() } else { None };
        drop(waiting);
        match (ended, error) {
            (false, _) => Poll::Pending,
            (true, None) => Poll::Ready(None),
            (true, Some(status)) => {
                self.failed = true;
                Poll::Ready(Some(Err(status)))
            }
        }
    }
}

impl Drop for AckStream {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Release);
        self.shared.drained.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};

    use super::*;

    fn result(request_id: u64) -> AddResult {
        AddResult { request_id, code: 1, retry_after_ms: 0 }
    }

    #[tokio::test]
    async fn answers_share_messages_and_the_stream_ends_after_the_last() {
        let (acks, mut stream) = acks();
        acks.hello(Identity::default());
        acks.put(vec![result(1)]);
        acks.open(2);
        acks.end();
        let first = stream.next().await.unwrap().unwrap();
        assert!(first.hello.is_some() && first.results.len() == 1);
        assert!(stream.next().now_or_never().is_none(), "two adds are open");
        acks.put_opened(vec![result(2)]);
        acks.put_opened(vec![result(3)]);
        let second = stream.next().await.unwrap().unwrap();
        assert_eq!(second.results.iter().map(|r| r.request_id).collect::<Vec<_>>(), [2, 3]);
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn a_caller_that_takes_no_answers_is_not_read_from() {
        let (acks, mut stream) = acks();
        acks.put((0..MAX_WAITING as u64).map(result).collect());
        let mut room = Box::pin(acks.room());
        assert!(futures::poll!(&mut room).is_pending());
        assert_eq!(stream.next().await.unwrap().unwrap().results.len(), RESULTS_PER_MESSAGE);
        assert!(room.await);
        drop(stream);
        assert!(!acks.room().await);
    }

    #[tokio::test]
    async fn an_error_comes_after_the_answers() {
        let (acks, mut stream) = acks();
        acks.put(vec![result(1)]);
        acks.fail(Status::invalid_argument("x"));
        assert!(stream.next().await.unwrap().is_ok());
        assert!(stream.next().await.unwrap().is_err());
        assert!(stream.next().await.is_none());
    }
}
