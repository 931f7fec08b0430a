//! A namespace of a test's own.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::kubectl::{apply, condition, get, kubectl, list, ready};
use super::wait::until;

/// A namespace that is deleted, with everything in it, when the value is dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one. Its pods have to keep to the strictest rules of the cluster.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn create(prefix: &str) -> Result<Self> {
        let name = format!("{prefix}-{}", &uuid::Uuid::new_v4().simple().to_string()[..6]);
        let object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
            },
        });
        apply("default", &object.to_string())?;
        let namespace = Self { name };
        until("the namespace's account", Duration::from_secs(30), || {
            get(&namespace.name, "serviceaccount", "default")
        })?;
        Ok(namespace)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Deletes it and answers how long that took.
    ///
    /// # Errors
    /// Something is left after `limit`; the message says what.
    pub fn delete(self, limit: Duration) -> Result<Duration> {
        let started = Instant::now();
        let name = self.name.clone();
        drop(self);
        until("the namespace's end", limit, || {
            let Some(left) = get("default", "namespace", &name)? else { return Ok(Some(())) };
            bail!("still there: {}", left["status"]["conditions"])
        })?;
        Ok(started.elapsed())
    }

    /// Waits until an object is Ready for its newest generation, and answers it.
    ///
    /// # Errors
    /// It is not within `limit`; the message shows its status and the pods.
    pub fn wait_ready(&self, kind: &str, name: &str, limit: Duration) -> Result<Value> {
        let mut last = Value::Null;
        let waited = until(&format!("{kind} {name} to be Ready"), limit, || {
            let Some(object) = get(&self.name, kind, name)? else { bail!("it is not there") };
            last = object.clone();
            Ok(ready(&object).then_some(object))
        });
        waited.with_context(|| {
            let verdict = condition(&last, "Ready");
            format!("status {}\nReady {verdict:?}\n{}", last["status"], self.describe())
        })
    }

    /// Pods, events and the end of logs: what a person would look at first.
    #[must_use]
    pub fn describe(&self) -> String {
        let ask = |args: &[&str]| {
            let mut all = vec!["-n", self.name.as_str()];
            all.extend(args);
            kubectl(&all).map(|done| done.stdout + &done.stderr).unwrap_or_else(|error| format!("{error:#}"))
        };
        let mut text = ask(&["get", "pods,pvc", "-o", "wide"]);
        let events = ask(&["get", "events", "--sort-by=.lastTimestamp"]);
        let from = events.lines().count().saturating_sub(25);
        for line in events.lines().skip(from) {
            let _infallible = writeln!(text, "{line}");
        }
        for pod in list(&self.name, "pods", "").unwrap_or_default() {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let _infallible = writeln!(text, "--- {name}\n{}", ask(&["logs", "--tail=6", name]));
        }
        text
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if std::env::var_os("TIDEMILL_E2E_KEEP").is_none() {
            drop(kubectl(&["delete", "namespace", &self.name, "--wait=false"]));
        }
    }
}
