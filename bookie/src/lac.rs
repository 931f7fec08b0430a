//! Callers that wait for a ledger's LAC to rise.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tidemill_types::LedgerId;
use tokio::sync::Notify;

/// Most callers that wait at once; one more is answered with what is known.
const MAX_WAITERS: usize = 16 << 10;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct LacWaiters {
    ledgers: Mutex<HashMap<LedgerId, (Arc<Notify>, usize)>>,
    /// So that an add looks at nothing while nobody waits.
    count: AtomicUsize,
}

/// One of them; leaves when dropped.
#[derive(Debug)]
pub(crate) struct LacWaiter<'a> {
    all: &'a LacWaiters,
    ledger: LedgerId,
    notify: Arc<Notify>,
}

impl LacWaiters {
    /// Begins to wait; `None` when too many do. Look at the LAC after this and before each [`LacWaiter::rose`].
    pub(crate) fn wait(&self, ledger: LedgerId) -> Option<LacWaiter<'_>> {
        let fits = |n: usize| (n < MAX_WAITERS).then_some(n + 1);
        self.count.try_update(Ordering::SeqCst, Ordering::SeqCst, fits).ok()?;
        let mut ledgers = self.ledgers.lock();
        let (notify, n) = ledgers.entry(ledger).or_default();
        *n += 1;
        Some(LacWaiter { all: self, ledger, notify: notify.clone() })
    }

    /// The LACs of these ledgers may have risen.
    pub(crate) fn wake(&self, ledgers: &[LedgerId]) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let waiting = self.ledgers.lock();
        for (notify, _) in ledgers.iter().filter_map(|l| waiting.get(l)) {
            notify.notify_waiters();
        }
    }
}

impl LacWaiter<'_> {
    /// Future that is done at the next [`LacWaiters::wake`]; counts from its creation.
    pub(crate) fn rose(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for LacWaiter<'_> {
    fn drop(&mut self) {
        let mut ledgers = self.all.ledgers.lock();
        if let Some((_, n)) = ledgers.get_mut(&self.ledger) {
            *n -= 1;
            if *n == 0 {
                ledgers.remove(&self.ledger);
            }
        }
        self.all.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_wake_reaches_those_who_began_before_it() {
        let all = LacWaiters::default();
        let waiter = all.wait(LedgerId(1)).unwrap();
        let rose = waiter.rose();
        all.wake(&[LedgerId(2)]);
        let mut rose = Box::pin(rose);
        assert!(rose.as_mut().now_or_never().is_none());
        all.wake(&[LedgerId(1)]);
        rose.await;
        drop(waiter);
        assert!(all.ledgers.lock().is_empty());
        assert_eq!(all.count.load(Ordering::SeqCst), 0);
    }
}
