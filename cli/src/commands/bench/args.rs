//! What a load consists of.

use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;
use serde_json::{Value, json};
use tidemill_client::ProducerConfig;

use crate::commands::produce::ProducerArgs;

/// Length of a run without a bound of its own.
const DURATION: Duration = Duration::from_secs(10);
/// Smallest value: what `bench e2e` writes into each.
const MIN_RECORD_BYTES: u64 = 16;

/// When a run ends.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BoundArgs {
    /// End after so many records.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) records: Option<u64>,
    /// End after so long; 10s when there is no --records either.
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) duration: Option<Duration>,
}

impl BoundArgs {
    /// The longest time; `None`: the records are the bound.
    pub(super) fn time(&self) -> Option<Duration> {
        self.duration.or(self.records.is_none().then_some(DURATION))
    }

    /// Whether a run is over for a sender whose next record is due `elapsed` after the beginning.
    pub(super) fn over(&self, elapsed: Duration) -> bool {
        self.time().is_some_and(|t| elapsed >= t)
    }

    /// Records of one of `of` senders; all senders together write what was asked for.
    pub(super) fn share(&self, sender: u64, of: u64) -> u64 {
        self.records.map_or(u64::MAX, |n| n / of + u64::from(sender < n % of))
    }
}

/// Flags of `bench produce` and `bench e2e`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// The topic; created when missing.
    #[arg(long, default_value = "tidemill-bench")]
    pub(super) topic: String,
    /// Partitions of a topic that is created.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) partitions: u32,
    #[command(flatten)]
    pub(super) bound: BoundArgs,
    /// Load without measuring for so long first; the bounds count from its end.
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    pub(super) warmup: Duration,
    /// Bytes of each value, 16 bytes to 1MiB; hexadecimal digits, so that compression halves them.
    #[arg(long, default_value = "100B", value_name = "SIZE", value_parser = record_bytes)]
    pub(super) record_bytes: ByteSize,
    /// Records per second of all producers; 0 = as fast as possible.
    #[arg(long, value_name = "N")]
    pub(super) rate: Option<u64>,
    /// Number of different keys, used in turn; 0 = no key.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) keys: u64,
    #[command(flatten)]
    pub(super) producer: ProducerArgs,
    /// Producers.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) producers: u32,
    /// Batches of a partition that are unanswered at once, 1 to 5.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(super) in_flight: u8,
    /// Print the report as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Flags of `bench consume`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReadArgs {
    /// The topic; `tidemill bench produce` fills it.
    #[arg(long, default_value = "tidemill-bench")]
    pub(super) topic: String,
    #[command(flatten)]
    pub(super) bound: BoundArgs,
    /// Print the report as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

fn record_bytes(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse()?;
    if (ByteSize::b(MIN_RECORD_BYTES)..=ByteSize::mib(1)).contains(&size) {
        Ok(size)
    } else {
        Err("16B to 1MiB expected".to_owned())
    }
}

impl LoadArgs {
    pub(super) fn config(&self) -> ProducerConfig {
        ProducerConfig { max_in_flight: usize::from(self.in_flight), ..self.producer.config() }
    }

    pub(super) fn value_bytes(&self) -> usize {
        usize::try_from(self.record_bytes.as_u64()).unwrap_or(usize::MAX)
    }

    /// Everything that decides the figures; `partitions` are those the topic has.
    pub(super) fn settings(&self, rate: u64, partitions: usize) -> Value {
        json!({
            "topic": self.topic,
            "partitions": partitions,
            "records": self.bound.records,
            "durationSeconds": self.bound.time().map(|t| t.as_secs_f64()),
            "warmupSeconds": self.warmup.as_secs_f64(),
            "recordBytes": self.record_bytes.as_u64(),
            "rate": rate,
            "keys": self.keys,
            "batchBytes": self.producer.batch_bytes.as_u64(),
            "lingerMs": self.producer.linger.as_secs_f64() * 1e3,
            "compression": format!("{:?}", self.producer.compression).to_lowercase(),
            "deliveryTimeoutSeconds": self.producer.delivery_timeout.as_secs_f64(),
            "producers": self.producers,
            "inFlight": self.in_flight,
        })
    }
}

impl ReadArgs {
    /// Everything that decides the figures.
    pub(super) fn settings(&self, partitions: usize) -> Value {
        json!({
            "topic": self.topic,
            "partitions": partitions,
            "records": self.bound.records,
            "durationSeconds": self.bound.time().map(|t| t.as_secs_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_always_bounded() {
        let bound = |records, duration| BoundArgs { records, duration };
        assert_eq!(bound(None, None).time(), Some(DURATION));
        assert_eq!(bound(Some(5), None).time(), None);
        let second = Duration::from_secs(1);
        assert_eq!(bound(Some(5), Some(second)).time(), Some(second));
        assert!(bound(None, Some(second)).over(second));
        assert!(!bound(None, Some(second)).over(Duration::from_millis(999)));
        assert!(!bound(Some(5), None).over(DURATION * 100));
    }

    #[test]
    fn shares_add_up() {
        let bound = BoundArgs { records: Some(10), duration: None };
        assert_eq!((0..4).map(|s| bound.share(s, 4)).collect::<Vec<_>>(), [3, 3, 2, 2]);
        assert_eq!(BoundArgs { records: None, duration: None }.share(0, 4), u64::MAX);
    }

    #[test]
    fn sizes() {
        assert!(record_bytes("16B").is_ok() && record_bytes("1MiB").is_ok() && record_bytes("100").is_ok());
        assert!(record_bytes("15").is_err() && record_bytes("2MiB").is_err());
    }
}
