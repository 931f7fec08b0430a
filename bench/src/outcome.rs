//! What a run of a load client brought.

use serde::{Deserialize, Serialize};

/// Percentiles in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    #[serde(default)]
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    #[serde(rename = "p99.9")]
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

/// What every client prints, ours and the peers'.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Printed {
    pub(crate) records: u64,
    pub(crate) seconds: f64,
    #[serde(default)]
    pub(crate) latency_us: Option<Latency>,
    #[serde(default)]
    pub(crate) ack_latency_us: Option<Latency>,
    /// Records and longest latency per slot.
    #[serde(default)]
    pub(crate) slots: Vec<(u64, u64)>,
    #[serde(default)]
    pub(crate) slot_seconds: f64,
    #[serde(default)]
    pub(crate) first_failure: Option<String>,
    #[serde(default)]
    pub(crate) settings: serde_json::Value,
}

/// With what it cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    pub(crate) printed: Printed,
    pub(crate) settings: String,
    /// User and system time of all servers, seconds; of the whole run, warm-up included.
    pub(crate) server_cpu_seconds: f64,
    /// The same of the load client.
    pub(crate) client_cpu_seconds: f64,
    /// Records of the whole run, as far as the servers' costs go: warm-up included, by estimate.
    pub(crate) all_records: f64,
    /// Bytes that the servers handed to the block layer.
    pub(crate) written_bytes: f64,
    pub(crate) peak_rss_bytes: f64,
    /// The disk cap ended it.
    pub(crate) cut_short: bool,
}

impl Outcome {
    pub(crate) fn rate(&self) -> f64 {
        if self.printed.seconds > 0.0 { as_f64(self.printed.records) / self.printed.seconds } else { 0.0 }
    }

    /// Server CPU per million records.
    pub(crate) fn cpu_per_million(&self) -> f64 {
        if self.all_records > 0.0 { self.server_cpu_seconds / self.all_records * 1e6 } else { f64::NAN }
    }
}

/// Counts here are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^53")]
pub(crate) fn as_f64(n: u64) -> f64 {
    n as f64
}

/// The middle one, or the mean of the middle two.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut v: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    v.sort_by(f64::total_cmp);
    let mid = v.len() / 2;
    match v.len() {
        0 => None,
        n if n % 2 == 1 => v.get(mid).copied(),
        _ => Some((v[mid - 1] + v[mid]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, f64::NAN]), Some(2.0));
        assert_eq!(median([5.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn both_clients_forms_are_read() {
        let ours = r#"{"bench":"produce","records":5,"seconds":2.0,"latencyUs":{"p50":1,"p90":2,"p99":3,"p99.9":4,"max":5},
            "ackLatencyUs":null,"slots":[[5,5]],"slotSeconds":0.1,"firstFailure":null,"settings":{"rate":1}}"#;
        let p: Printed = serde_json::from_str(ours).unwrap();
        assert_eq!((p.records, p.latency_us.unwrap().p999, p.slots[0]), (5, 4.0, (5, 5)));
        let peers = r#"{"records":7,"seconds":1.5,"latencyUs":null,"ackLatencyUs":null,"slotSeconds":0.1,"slots":[],"failures":0,"firstFailure":"x"}"#;
        let p: Printed = serde_json::from_str(peers).unwrap();
        assert_eq!((p.records, p.latency_us, p.first_failure.as_deref()), (7, None, Some("x")));
    }
}
