//! Ordered shutdown: a token that says "stop", named tasks that are waited for, and the first fatal error.

use std::{future::Future, sync::Arc};

use parking_lot::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::health::Health;

/// Passed to everything that runs for long. Clones share one state.
#[derive(Clone, Debug)]
pub struct Supervisor {
    token: CancellationToken,
    root: CancellationToken,
    tracker: TaskTracker,
    fatal: Arc<Mutex<Option<String>>>,
    health: Health,
}

impl Supervisor {
    /// Nothing runs yet.
    #[must_use]
    pub fn new(health: Health) -> Self {
        let token = CancellationToken::new();
        Self {
            root: token.clone(),
            token,
            tracker: TaskTracker::new(),
            fatal: Arc::new(Mutex::new(None)),
            health,
        }
    }

    /// A part with its own token and tasks: stopping the whole stops it, stopping it leaves the whole. A fatal error in it
    /// is one of the whole.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            token: self.token.child_token(),
            root: self.root.clone(),
            tracker: TaskTracker::new(),
            fatal: self.fatal.clone(),
            health: self.health.clone(),
        }
    }

    /// A part that goes on when the whole is told to stop, so that it can be drained and stopped in order; a fatal error
    /// in it is one of the whole.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self { token: CancellationToken::new(), tracker: TaskTracker::new(), ..self.clone() }
    }

    /// The health that goes with it.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Cancelled when it is time to stop.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Runs `task` until it ends; [`Self::stop`] waits for it. The task watches [`Self::token`] itself. A panic is fatal.
    pub fn spawn<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let this = self.clone();
        let handle = self.tracker.spawn(task);
        self.tracker.spawn(async move {
            if let Err(e) = handle.await
                && e.is_panic()
            {
                this.fatal(&format!("task {name} panicked: {e}"));
            }
        });
    }

    /// Runs `task` and drops it when it is time to stop.
    pub fn spawn_until_stop<F>(&self, name: &'static str, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let token = self.token.clone();
        self.spawn(name, async move {
            tokio::select! {
                () = token.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// The process cannot go on: the first reason is kept, everything stops.
    pub fn fatal(&self, why: &str) {
        let mut first = self.fatal.lock();
        if first.is_none() {
            tracing::error!(why, "fatal");
            *first = Some(why.to_owned());
        }
        drop(first);
        self.health.die(why);
        self.token.cancel();
        self.root.cancel();
    }

    /// The first fatal reason.
    #[must_use]
    pub fn fatal_reason(&self) -> Option<String> {
        self.fatal.lock().clone()
    }

    /// Says "stop" and waits for all tasks.
    pub async fn stop(&self) {
        self.token.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stop_waits_and_a_panic_is_fatal() {
        let s = Supervisor::new(Health::new());
        let token = s.token().clone();
        s.spawn("waits", async move { token.cancelled().await });
        s.spawn("panics", async { panic!("boom") });
        s.token().cancelled().await;
        s.stop().await;
        assert!(s.fatal_reason().unwrap().contains("panics"));
        assert!(!s.health().is_alive());
    }

    #[tokio::test]
    async fn a_part_stops_alone() {
        let s = Supervisor::new(Health::new());
        let part = s.child();
        part.spawn_until_stop("forever", std::future::pending());
        part.stop().await;
        assert!(!s.token().is_cancelled());
        let apart = s.apart();
        s.token().cancel();
        assert!(!apart.token().is_cancelled());
        s.stop().await;
    }
}
