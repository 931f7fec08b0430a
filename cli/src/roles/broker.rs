//! `tidemill broker`.

use tidemill_broker::{BrokerConfig, BrokerHandle};
use tidemill_runtime::{Metrics, Supervisor};

use super::Role;
use crate::error::{CliError, start_failed};

/// Serves partitions.
pub(crate) struct Broker;

impl Role for Broker {
    type Config = BrokerConfig;
    type Handle = BrokerHandle;
    const NAME: &'static str = "broker";
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("listen", "Address of the gRPC server"),
        ("advertise", "host:port under which clients reach it"),
        ("name", "Name such as broker-0; with the cluster it is the identity"),
        ("zone", "Failure zone"),
        ("meta", "host:port of the metadata quorum's members, comma-separated"),
        ("memory-bytes", "Memory budget: in-flight 25 %, tail cache 50 %, catch-up 25 %"),
        ("produce-wait-ms", "Wait for room in the in-flight budget"),
        ("stream-credit-bytes", "Unanswered bytes per produce stream"),
        ("partition-credit-bytes", "Unanswered bytes per partition of a stream"),
        ("max-message-bytes", "max.message.bytes of topics that do not set it"),
        ("max-copies", "Topics get at most so many copies"),
        ("ensemble-change-delay-ms", "A bookie away for longer is replaced"),
        ("ensemble-change-delay-restart-ms", "The same after an announced restart"),
        ("roll-bytes", "roll.bytes of topics that do not set it"),
        ("roll-ms", "roll.ms of topics that do not set it"),
        ("idle-close-ms", "An idle ledger is closed after"),
        ("time-settle-ms", "Retention by time waits for two ticks of quorum time so far apart"),
        ("internal-partitions", "Partitions of __consumer_offsets, fixed by the first broker that needs it"),
        ("retention-ms", "retention.ms of topics that do not set it"),
        ("group-lag-series", "Partitions of groups with a series in the metric of the lag, 0 = none"),
        ("compacted-ledger-bytes", "Largest ledger that key compaction writes"),
        ("compaction-keys-bytes", "Memory for the keys of a compaction; more take several passes"),
        ("compaction-bytes-per-second", "What all compactions of this broker read and write"),
        ("takeover-concurrency", "Partitions that are opened at once"),
        ("drain-deadline-ms", "Longest drain at a stop"),
    ];

    async fn start(
        config: BrokerConfig,
        sup: &Supervisor,
        metrics: &Metrics,
    ) -> Result<BrokerHandle, CliError> {
        tidemill_broker::start(config, sup, metrics)
            .await
            .map_err(|e| start_failed(Self::NAME, &e.to_string(), e.code()))
    }

    async fn stop(handle: BrokerHandle) {
        handle.stop().await;
    }

    fn describe(handle: &BrokerHandle) -> String {
        format!("broker on {}", handle.addr())
    }
}
