//! Logs and metrics.

use std::{io::IsTerminal, sync::Arc};

use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging to stderr. `filter` follows the syntax of `tracing`'s env filter, such as `info,tidemill_bookie=debug`.
///
/// # Errors
/// A filter that does not parse, or logging that was started already.
pub fn init_logs(format: LogFormat, filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|e| format!("log filter {filter:?}: {e}"))?;
    let registry = tracing_subscriber::registry().with(filter);
    let done = match format {
        LogFormat::Json => {
            registry.with(fmt::layer().json().flatten_event(true).with_writer(std::io::stderr)).try_init()
        }
        LogFormat::Text => registry
            .with(fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr))
            .try_init(),
    };
    done.map_err(|e| e.to_string())
}

/// A registry that all roles of a process share. Names get the prefix `tidemill_`; a role registers under its own
/// sub-prefix.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        Self { registry: Arc::new(Mutex::new(Registry::with_prefix("tidemill"))) }
    }

    /// Registers metrics under `tidemill_<prefix>_`, with labels such as `("member", "bookie-0")` on all of them.
    pub fn register(&self, prefix: &str, labels: &[(&str, &str)], with: impl FnOnce(&mut Registry)) {
        let mut registry = self.registry.lock();
        let sub = registry.sub_registry_with_prefix(prefix);
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned().into(), (*v).to_owned().into()));
        with(sub.sub_registry_with_labels(labels));
    }

    /// OpenMetrics text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = String::new();
        if let Err(e) = prometheus_client::encoding::text::encode(&mut out, &self.registry.lock()) {
            tracing::warn!(error = %e, "metrics could not be encoded");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    #[test]
    fn names_and_labels() {
        let m = Metrics::new();
        let c = Counter::<u64>::default();
        m.register("bookie", &[("member", "bookie-0")], |r| {
            r.register("adds", "Adds acknowledged", c.clone())
        });
        c.inc();
        assert!(m.encode().contains("tidemill_bookie_adds_total{member=\"bookie-0\"} 1"), "{}", m.encode());
    }
}
