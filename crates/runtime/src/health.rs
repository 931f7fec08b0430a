//! Liveness and readiness that are true: a role names what it waits for, and is ready when nothing is left.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

/// Shared health of a process or of one role in it.
#[derive(Clone, Debug)]
pub struct Health {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    waits: Mutex<BTreeMap<String, String>>,
    dead: Mutex<Option<String>>,
    changed: watch::Sender<u64>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// Ready and alive.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                waits: Mutex::new(BTreeMap::new()),
                dead: Mutex::new(None),
                changed: watch::Sender::new(0),
            }),
        }
    }

    /// Not ready because of `what` (a stable key such as `bookie/quorum`), `why` for people. Logged on change.
    pub fn waits_for(&self, what: &str, why: &str) {
        let old = self.inner.waits.lock().insert(what.to_owned(), why.to_owned());
        if old.as_deref() != Some(why) {
            tracing::info!(what, why, "not ready");
            self.inner.changed.send_modify(|v| *v += 1);
        }
    }

    /// `what` is there.
    pub fn has(&self, what: &str) {
        if self.inner.waits.lock().remove(what).is_some() {
            tracing::info!(what, "is there");
            self.inner.changed.send_modify(|v| *v += 1);
        }
    }

    /// Not alive any more; the first reason stays.
    pub fn die(&self, why: &str) {
        let mut dead = self.inner.dead.lock();
        if dead.is_none() {
            *dead = Some(why.to_owned());
            self.inner.changed.send_modify(|v| *v += 1);
        }
    }

    /// What it waits for; empty = ready.
    #[must_use]
    pub fn waiting(&self) -> Vec<(String, String)> {
        self.inner.waits.lock().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// Alive and waiting for nothing.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_alive() && self.inner.waits.lock().is_empty()
    }

    /// Whether nothing fatal happened.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.inner.dead.lock().is_none()
    }

    /// Why it is dead.
    #[must_use]
    pub fn death(&self) -> Option<String> {
        self.inner.dead.lock().clone()
    }

    /// Waits until it is ready.
    pub async fn ready(&self) {
        let mut rx = self.inner.changed.subscribe();
        while !self.is_ready() {
            // The sender lives as long as `self`.
            if rx.changed().await.is_err() {
                return;
            }
        }
    }

    /// A receiver that wakes at each change.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ready_when_nothing_is_left() {
        let h = Health::new();
        h.waits_for("a", "x");
        h.waits_for("b", "y");
        assert!(!h.is_ready());
        let h2 = h.clone();
        let t = tokio::spawn(async move { h2.ready().await });
        h.has("a");
        h.has("b");
        t.await.unwrap();
        h.die("disk");
        h.die("later");
        assert!(!h.is_ready());
        assert_eq!(h.death().as_deref(), Some("disk"));
    }
}
