//! Logs and metrics.

use std::{collections::HashMap, io::IsTerminal, sync::Arc};

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

    /// OpenMetrics text, each family once, in the order in which it was registered first.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = String::new();
        if let Err(e) = prometheus_client::encoding::text::encode(&mut out, &self.registry.lock()) {
            tracing::warn!(error = %e, "metrics could not be encoded");
        }
        merge_families(&out)
    }
}

/// Members of one role in one process register the same families, and the encoder writes each with a head of its own.
/// OpenMetrics wants one head a family and its samples together: a scraper that is strict refuses the page otherwise.
fn merge_families(text: &str) -> String {
    // Head and samples of each family.
    let mut families: Vec<(&str, String, String)> = Vec::new();
    let mut at = HashMap::new();
    let mut now = None;
    let mut fresh = false;
    for line in text.lines().filter(|l| *l != EOF) {
        if let Some(head) = line.strip_prefix("# ") {
            let name = head.split(' ').nth(1).unwrap_or_default();
            if now.is_none_or(|i: usize| families[i].0 != name) || head.starts_with("HELP ") {
                fresh = !at.contains_key(name);
                let i = *at.entry(name).or_insert(families.len());
                if fresh {
                    families.push((name, String::new(), String::new()));
                }
                now = Some(i);
            }
            if fresh && let Some(family) = now.and_then(|i| families.get_mut(i)) {
                family.1.extend([line, "\n"]);
            }
        } else if let Some(family) = now.and_then(|i| families.get_mut(i)) {
            family.2.extend([line, "\n"]);
        }
    }
    let mut out = String::with_capacity(text.len());
    for (_, head, samples) in &families {
        out.extend([head.as_str(), samples.as_str()]);
    }
    out.extend([EOF, "\n"]);
    out
}

/// The last line of an OpenMetrics page.
const EOF: &str = "# EOF";

#[cfg(test)]
mod tests {
    use prometheus_client::{metrics::counter::Counter, registry::Unit};

    use super::*;

    #[test]
    fn names_and_labels() {
        let m = Metrics::new();
        let c = Counter::<u64>::default();
        m.register("bookie", &[("member", "bookie-0")], |r| {
            r.register("adds", "Adds acknowledged", c.clone());
        });
        c.inc();
        assert!(m.encode().contains("tidemill_bookie_adds_total{member=\"bookie-0\"} 1"), "{}", m.encode());
    }

    #[test]
    fn a_family_of_two_members_has_one_head() {
        let m = Metrics::new();
        for member in ["bookie-0", "bookie-1"] {
            m.register("bookie", &[("member", member)], |r| {
                r.register("adds", "Adds acknowledged", Counter::<u64>::default());
                r.register_with_unit("written", "Bytes written", Unit::Bytes, Counter::<u64>::default());
            });
        }
        let want = "# HELP tidemill_bookie_adds Adds acknowledged.\n\
                    # TYPE tidemill_bookie_adds counter\n\
                    tidemill_bookie_adds_total{member=\"bookie-0\"} 0\n\
                    tidemill_bookie_adds_total{member=\"bookie-1\"} 0\n\
                    # HELP tidemill_bookie_written_bytes Bytes written.\n\
                    # TYPE tidemill_bookie_written_bytes counter\n\
                    # UNIT tidemill_bookie_written_bytes bytes\n\
                    tidemill_bookie_written_bytes_total{member=\"bookie-0\"} 0\n\
                    tidemill_bookie_written_bytes_total{member=\"bookie-1\"} 0\n\
                    # EOF\n";
        assert_eq!(m.encode(), want);
        assert_eq!(Metrics::new().encode(), "# EOF\n");
    }
}
