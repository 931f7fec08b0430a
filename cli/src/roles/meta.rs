//! `tidemill meta`.

use tidemill_meta::{MetaConfig, MetaHandle};
use tidemill_runtime::{Metrics, Supervisor};

use super::Role;
use crate::error::{CliError, start_failed};

/// A member of the metadata quorum.
pub(crate) struct Meta;

impl Role for Meta {
    type Config = MetaConfig;
    type Handle = MetaHandle;
    const NAME: &'static str = "meta";
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("data-dir", "Folder of the log and the snapshots"),
        ("listen", "Address of the gRPC server"),
        ("advertise", "host:port under which others reach it"),
        ("name", "Name for people, such as meta-0"),
        ("session-ttl-ms", "A session that is not renewed for so long ends"),
        ("raft-heartbeat-ms", "The leader's heartbeat"),
        ("raft-election-min-ms", "Shortest election time-out"),
        ("raft-election-max-ms", "Longest election time-out"),
        ("tick-ms", "Time between ticks of the quorum's clock"),
        ("snapshot-every", "Log entries between snapshots"),
        ("rebalance-after-ms", "A returning broker gets its share back after"),
        (
            "lost-after-ms",
            "A bookie without a session for so long is declared lost, one bookie or one zone at a time",
        ),
        (
            "repair-grace-ms",
            "An owner rolls its ledger away from a bookie that leaves within, else the auditor recovers it",
        ),
        ("compare-every-ms", "All replicas of each closed ledger are compared so often"),
        ("repairs-per-bookie", "Repairs that one bookie gets at once"),
        ("purge-wait-ms", "A deleted topic is purged when two ticks were past its time, so far apart"),
    ];

    async fn start(config: MetaConfig, sup: &Supervisor, metrics: &Metrics) -> Result<MetaHandle, CliError> {
        tidemill_meta::start(config, sup, metrics)
            .await
            .map_err(|e| start_failed(Self::NAME, &e.to_string(), e.code()))
    }

    async fn stop(handle: MetaHandle) {
        handle.stop().await;
    }

    fn describe(handle: &MetaHandle) -> String {
        format!("meta on {}", handle.addr())
    }
}
