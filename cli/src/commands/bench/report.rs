//! What a run measured, with everything that it was set to.

use std::time::Duration;

use serde_json::{Value, json};
use tidemill_client::ErrorCode;

use super::tally::{Latency, SLOT, Slot};
use crate::{
    error::CliError,
    progress::{bytes, count, per_second, span},
};

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) command: &'static str,
    pub(super) settings: Value,
    /// Acknowledged, or received.
    pub(super) records: u64,
    /// Of their values (and of keys and headers for `consume`).
    pub(super) bytes: u64,
    /// From the beginning to the last of them.
    pub(super) took: Duration,
    /// From when a record was due to its acknowledgement (`produce`) or receipt (`e2e`).
    pub(super) latency: Option<Latency>,
    /// To the acknowledgement (`e2e`).
    pub(super) ack_latency: Option<Latency>,
    /// What was acknowledged (`produce`) or received (`e2e`) when.
    pub(super) slots: Vec<Slot>,
    pub(super) not_written: u64,
    pub(super) unknown: u64,
    /// Acknowledged and not received (`e2e`).
    pub(super) missing: u64,
    pub(super) batch_retries: u64,
    pub(super) first_failure: Option<String>,
}

impl Report {
    /// Lines for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "bench {}: {} records, {} in {}: {} records/s, {}/s\n",
            self.command,
            count(self.records),
            bytes(self.bytes),
            span(self.took),
            count(per_second(self.records, self.took)),
            bytes(per_second(self.bytes, self.took)),
        );
        for (name, latency) in [("latency", self.latency), ("to the acknowledgement", self.ack_latency)] {
            if let Some(latency) = latency {
                text.push_str(&format!("  {name}: {latency}\n"));
            }
        }
        for (name, n) in [
            ("not written", self.not_written),
            ("of unknown outcome", self.unknown),
            ("acknowledged and not received", self.missing),
            ("batches sent again", self.batch_retries),
        ] {
            if n > 0 {
                text.push_str(&format!("  {name}: {}\n", count(n)));
            }
        }
        if let Value::Object(settings) = &self.settings {
            let set = settings.iter().filter(|(_, v)| !v.is_null());
            let set: Vec<_> = set.map(|(k, v)| format!("{k}={}", plain(v))).collect();
            text.push_str(&format!("  settings: {}\n", set.join(" ")));
        }
        text
    }

    /// One JSON document with everything.
    pub(super) fn json(&self) -> Result<String, CliError> {
        let document = json!({
            "bench": self.command,
            "settings": self.settings,
            "records": self.records,
            "bytes": self.bytes,
            "seconds": self.took.as_secs_f64(),
            "recordsPerSecond": per_second(self.records, self.took),
            "bytesPerSecond": per_second(self.bytes, self.took),
            "latencyUs": self.latency,
            "ackLatencyUs": self.ack_latency,
            "slotSeconds": SLOT.as_secs_f64(),
            "slots": self.slots.iter().map(|s| [s.records, s.longest_us]).collect::<Vec<_>>(),
            "notWritten": self.not_written,
            "outcomeUnknown": self.unknown,
            "missing": self.missing,
            "batchRetries": self.batch_retries,
            "firstFailure": self.first_failure,
        });
        serde_json::to_string_pretty(&document)
            .map(|text| text + "\n")
            .map_err(|e| CliError::new("output", e.to_string(), ErrorCode::Internal))
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_figures_and_settings() {
        let latency = Latency { p50: 1_000, p90: 2_000, p99: 3_000, p999: 4_000, max: 5_000 };
        let r = Report {
            command: "produce",
            settings: json!({"topic": "t", "rate": 0, "records": null}),
            records: 10_000,
            bytes: 1 << 20,
            took: Duration::from_secs(2),
            latency: Some(latency),
            not_written: 3,
            ..Report::default()
        };
        assert_eq!(
            r.text(),
            "bench produce: 10 000 records, 1.0 MiB in 2 s: 5 000 records/s, 512.0 KiB/s\n  latency: p50 1.00 ms, \
             p90 2.00 ms, p99 3.00 ms, p99.9 4.00 ms, max 5.00 ms\n  not written: 3\n  settings: rate=0 topic=t\n"
        );
        let json: Value = serde_json::from_str(&r.json().unwrap()).unwrap();
        assert_eq!(json["latencyUs"]["p99.9"], 4_000);
        assert_eq!(json["settings"]["topic"], "t");
        assert_eq!(json["recordsPerSecond"], 5_000);
    }
}
