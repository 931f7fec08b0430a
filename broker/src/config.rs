//! What a broker is told.

use std::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize};
use tidemill_runtime::defaults;
use tidemill_types::{Endpoint, Replication};

use crate::{error::BrokerError, limits};

/// Configuration of one broker. Keys are flat and kebab-case; an unknown key is an error. Every number starts from
/// [`tidemill_runtime::defaults`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BrokerConfig {
    /// Where the gRPC server listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// `host:port` under which clients reach it; absent = the bound address.
    pub advertise: Option<String>,
    /// Name such as `broker-0`. Together with the cluster it is the broker's identity: no two brokers may share one.
    pub name: String,
    /// Failure zone; empty when unknown.
    pub zone: String,
    /// `host:port` of the members of the metadata quorum.
    pub meta: Vec<String>,
    /// Memory budget, bytes: in-flight produce 25 %, tail cache 50 %, catch-up reads 25 %.
    pub memory_bytes: u64,
    /// How long produce waits for room in the in-flight budget before `OVERLOADED`, ms.
    pub produce_wait_ms: u64,
    /// Unanswered bytes per produce stream.
    pub stream_credit_bytes: u64,
    /// Unanswered bytes per partition on one produce stream.
    pub partition_credit_bytes: u64,
    /// `max.message.bytes` of topics that do not set it.
    pub max_message_bytes: u32,
    /// Topics get at most so many copies; absent = as asked. Only for a cluster with fewer bookies than copies.
    #[serde(deserialize_with = "optional_number")]
    pub max_copies: Option<u8>,
    /// A bookie away for longer is replaced, ms.
    pub ensemble_change_delay_ms: u64,
    /// The same after an announced restart, ms.
    pub ensemble_change_delay_restart_ms: u64,
    /// `roll.bytes` of topics that do not set it.
    pub roll_bytes: u64,
    /// `roll.ms` of topics that do not set it.
    pub roll_ms: u64,
    /// An idle ledger is closed after, ms.
    pub idle_close_ms: u64,
    /// `retention.ms` of topics that do not set it.
    pub retention_ms: u64,
    /// Retention by time waits for two ticks of quorum time that are so far apart, without a jump between, ms.
    pub time_settle_ms: u64,
    /// Partitions of groups that have a series of their own in the metric of the lag; 0 switches it off.
    pub group_lag_series: u32,
    /// Largest ledger that key compaction writes, bytes.
    pub compacted_ledger_bytes: u64,
    /// Keys that a compaction knows at once, bytes of its table; more are taken in several passes.
    pub compaction_keys_bytes: u64,
    /// Bytes a second that all compactions of this broker read and write.
    pub compaction_bytes_per_second: u64,
    /// Partitions that are opened at once.
    pub takeover_concurrency: usize,
    /// Partitions of the internal topics, when this broker is the first that needs one; fixed from then on.
    pub internal_partitions: u32,
    /// Longest drain at a stop, ms.
    pub drain_deadline_ms: u64,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], defaults::PORT_GRPC)),
            advertise: None,
            name: "broker-0".to_owned(),
            zone: String::new(),
            meta: vec![format!("127.0.0.1:{}", defaults::PORT_GRPC)],
            memory_bytes: defaults::BROKER_MEMORY,
            produce_wait_ms: ms(defaults::PRODUCE_WAIT),
            stream_credit_bytes: defaults::STREAM_CREDIT,
            partition_credit_bytes: defaults::PARTITION_CREDIT,
            max_message_bytes: defaults::MAX_MESSAGE_BYTES,
            max_copies: None,
            ensemble_change_delay_ms: ms(defaults::ENSEMBLE_CHANGE_DELAY),
            ensemble_change_delay_restart_ms: ms(defaults::ENSEMBLE_CHANGE_DELAY_RESTART),
            roll_bytes: defaults::ROLL_BYTES,
            roll_ms: ms(defaults::ROLL_AGE),
            idle_close_ms: ms(defaults::IDLE_CLOSE),
            retention_ms: ms(defaults::RETENTION),
            time_settle_ms: ms(defaults::TIME_SETTLE),
            group_lag_series: defaults::GROUP_LAG_SERIES,
            compacted_ledger_bytes: defaults::COMPACTED_LEDGER_BYTES,
            compaction_keys_bytes: defaults::COMPACTION_KEYS_BYTES,
            compaction_bytes_per_second: defaults::COMPACTION_BYTES_PER_SECOND,
            takeover_concurrency: 256,
            internal_partitions: defaults::INTERNAL_PARTITIONS,
            drain_deadline_ms: 20_000,
        }
    }
}

impl BrokerConfig {
    /// Checks ranges and how the values fit together.
    ///
    /// # Errors
    /// [`BrokerError::Config`] with the key and what is allowed.
    pub fn check(&self) -> Result<(), BrokerError> {
        let refuse = |key: &'static str, why: String| Err(BrokerError::Config { key, why });
        if !(1..=limits::MAX_NAME).contains(&self.name.len()) {
            return refuse("name", format!("1 to {} bytes", limits::MAX_NAME));
        }
        if self.zone.len() > limits::MAX_NAME {
            return refuse("zone", format!("at most {} bytes", limits::MAX_NAME));
        }
        if self.meta.is_empty() {
            return refuse("meta", "at least one host:port of the metadata quorum".to_owned());
        }
        if let Some(text) = &self.advertise
            && parse_endpoint(text).is_none()
        {
            return refuse("advertise", format!("{text:?} is not host:port"));
        }
        if self.advertise.is_none() && self.listen.ip().is_unspecified() {
            return refuse(
                "advertise",
                format!("needed, because {} is no address to reach it at", self.listen),
            );
        }
        let largest = limits::MAX_PRODUCE_BYTES as u64;
        for (key, value, min, max) in [
            ("memory-bytes", self.memory_bytes, 8 * largest, u64::MAX / 2),
            ("stream-credit-bytes", self.stream_credit_bytes, 1, limits::MAX_CREDIT),
            ("partition-credit-bytes", self.partition_credit_bytes, 1, limits::MAX_CREDIT),
            ("max-message-bytes", self.max_message_bytes.into(), 1_024, limits::MAX_MESSAGE_CEILING.into()),
            ("max-copies", self.max_copies.unwrap_or(1).into(), 1, Replication::MAX_COPIES.into()),
            ("ensemble-change-delay-ms", self.ensemble_change_delay_ms, 1, limits::MAX_MS),
            ("ensemble-change-delay-restart-ms", self.ensemble_change_delay_restart_ms, 1, limits::MAX_MS),
            ("roll-bytes", self.roll_bytes, limits::MIN_ROLL_BYTES, limits::MAX_ROLL_BYTES),
            ("roll-ms", self.roll_ms, limits::MIN_ROLL_MS, limits::MAX_MS),
            ("idle-close-ms", self.idle_close_ms, 1, limits::MAX_MS),
            ("retention-ms", self.retention_ms, 1, limits::MAX_MS),
            ("time-settle-ms", self.time_settle_ms, 1, limits::MAX_MS),
            ("group-lag-series", self.group_lag_series.into(), 0, 100_000),
            ("compacted-ledger-bytes", self.compacted_ledger_bytes, limits::MIN_ROLL_BYTES, 1 << 30),
            ("compaction-keys-bytes", self.compaction_keys_bytes, 1 << 10, 1 << 40),
            ("compaction-bytes-per-second", self.compaction_bytes_per_second, 1 << 10, 1 << 40),
            ("takeover-concurrency", self.takeover_concurrency as u64, 1, 10_000),
            ("internal-partitions", self.internal_partitions.into(), 1, 1_024),
            ("produce-wait-ms", self.produce_wait_ms, 0, 600_000),
            ("drain-deadline-ms", self.drain_deadline_ms, 0, 600_000),
        ] {
            if !(min..=max).contains(&value) {
                return refuse(key, format!("{value} is not in {min} to {max}"));
            }
        }
        Ok(())
    }

    pub(crate) fn endpoint(&self, bound: SocketAddr) -> Endpoint {
        self.advertise
            .as_deref()
            .and_then(parse_endpoint)
            .unwrap_or_else(|| Endpoint { host: bound.ip().to_string(), port: bound.port() })
    }

    pub(crate) fn produce_wait(&self) -> Duration {
        Duration::from_millis(self.produce_wait_ms)
    }

    pub(crate) fn drain_deadline(&self) -> Duration {
        Duration::from_millis(self.drain_deadline_ms)
    }

    /// Clamps what a topic asks for to what this cluster can hold.
    pub(crate) fn clamp(&self, asked: Replication) -> Replication {
        let copies = self.max_copies.map_or(asked.copies, |max| asked.copies.min(max.max(1)));
        Replication { copies, ack_quorum: asked.ack_quorum.min(copies) }
    }
}

fn ms(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

/// `host:port`; an IPv6 address stands in brackets.
pub(crate) fn parse_endpoint(text: &str) -> Option<Endpoint> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|p| *p != 0)?;
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    (!bare.is_empty()).then(|| Endpoint { host: bare.to_owned(), port })
}

/// A number, its text (flags and variables come as text), or nothing.
fn optional_number<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u8>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Number(u8),
        Text(String),
    }
    match Option::<Given>::deserialize(d)? {
        None => Ok(None),
        Some(Given::Number(n)) => Ok(Some(n)),
        Some(Given::Text(t)) if t.is_empty() => Ok(None),
        Some(Given::Text(t)) => t.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed_and_a_bad_value_is_named() {
        BrokerConfig::default().check().unwrap();
        let bad = BrokerConfig { takeover_concurrency: 0, ..BrokerConfig::default() };
        assert!(bad.check().unwrap_err().to_string().contains("takeover-concurrency"));
        let bad = BrokerConfig { advertise: Some("x".into()), ..BrokerConfig::default() };
        assert!(bad.check().unwrap_err().to_string().contains("host:port"));
    }

    #[test]
    fn max_copies_comes_from_a_flag_or_a_file() {
        let mut layers = tidemill_runtime::config::Layers::new(&BrokerConfig::default()).unwrap();
        assert_eq!(layers.build::<BrokerConfig>().unwrap(), BrokerConfig::default());
        layers.flag("max-copies", "2").unwrap();
        assert_eq!(layers.build::<BrokerConfig>().unwrap().max_copies, Some(2));
    }

    #[test]
    fn replication_is_clamped_only_when_asked() {
        let asked = Replication { copies: 3, ack_quorum: 2 };
        let mut c = BrokerConfig::default();
        assert_eq!(c.clamp(asked), asked);
        c.max_copies = Some(1);
        assert_eq!(c.clamp(asked), Replication { copies: 1, ack_quorum: 1 });
        c.max_copies = Some(7);
        assert_eq!(c.clamp(asked), asked);
    }

    #[test]
    fn endpoints() {
        assert_eq!(parse_endpoint("[::1]:80"), Some(Endpoint { host: "::1".into(), port: 80 }));
        assert_eq!(parse_endpoint("h.example:7450").map(|e| e.port), Some(7450));
        for bad in ["", "h", "h:", "h:0", ":1", "::1:80", "h:x"] {
            assert_eq!(parse_endpoint(bad), None, "{bad}");
        }
    }
}
