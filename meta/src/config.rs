//! What a member of the quorum is told.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use tidemill_runtime::defaults;

use crate::MetaStartError;

/// Configuration of one member. Keys are flat and kebab-case; an unknown key is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MetaConfig {
    /// Folder of the log and the snapshots.
    pub data_dir: PathBuf,
    /// Where the gRPC server listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// `host:port` under which others reach it; absent = the bound address.
    pub advertise: Option<String>,
    /// Name for people, such as `meta-0`; not an identity.
    pub name: String,
    /// Time to live of a session, ms.
    pub session_ttl_ms: u64,
    /// Raft heartbeat, ms.
    pub raft_heartbeat_ms: u64,
    /// Raft election time-out, lower bound, ms.
    pub raft_election_min_ms: u64,
    /// Raft election time-out, upper bound, ms.
    pub raft_election_max_ms: u64,
    /// Quorum time moves so often, ms.
    pub tick_ms: u64,
    /// Log entries between two snapshots.
    pub snapshot_every: u64,
    /// A broker that came back gets partitions after it has been live for so long, ms.
    pub rebalance_after_ms: u64,
    /// Purge needs two ticks past the deadline, so far apart at least, ms.
    pub purge_wait_ms: u64,
    /// A bookie without a session for so long is declared lost, when it is the only one, or all of them are of one zone, ms.
    pub lost_after_ms: u64,
    /// What an owner gets to roll a ledger away from a bookie that leaves, before the auditor recovers it, ms.
    pub repair_grace_ms: u64,
    /// Repairs that one bookie gets at once.
    pub repairs_per_bookie: usize,
    /// All replicas of each closed ledger are compared so often, ms.
    pub compare_every_ms: u64,
}

fn ms(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

impl Default for MetaConfig {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("tidemill-data/meta"),
            listen: SocketAddr::from(([127, 0, 0, 1], defaults::PORT_GRPC)),
            advertise: None,
            name: "meta-0".to_owned(),
            session_ttl_ms: ms(defaults::SESSION_TTL),
            raft_heartbeat_ms: ms(defaults::RAFT_HEARTBEAT),
            raft_election_min_ms: ms(defaults::RAFT_ELECTION_MIN),
            raft_election_max_ms: ms(defaults::RAFT_ELECTION_MAX),
            tick_ms: ms(defaults::QUORUM_TICK),
            snapshot_every: defaults::SNAPSHOT_EVERY,
            rebalance_after_ms: 2_000,
            purge_wait_ms: ms(defaults::PURGE_WAIT),
            lost_after_ms: ms(defaults::LOST_AFTER),
            repair_grace_ms: ms(defaults::REPAIR_GRACE),
            repairs_per_bookie: defaults::REPAIRS_PER_BOOKIE,
            compare_every_ms: ms(defaults::COMPARE_EVERY),
        }
    }
}

impl MetaConfig {
    /// Checks ranges and how the values fit together.
    ///
    /// # Errors
    /// [`MetaStartError::Config`] with the key and what is allowed.
    pub fn check(&self) -> Result<(), MetaStartError> {
        let refuse = |key, why: String| Err(MetaStartError::Config { key, why });
        if self.data_dir.as_os_str().is_empty() {
            return refuse("data-dir", "not empty".to_owned());
        }
        if !(1..=253).contains(&self.name.len()) {
            return refuse("name", "1 to 253 bytes".to_owned());
        }
        match &self.advertise {
            Some(a) if !is_address(a) => return refuse("advertise", format!("{a:?} is not host:port")),
            None if self.listen.ip().is_unspecified() => {
                return refuse(
                    "advertise",
                    format!("needed, because {} is no address to reach it at", self.listen),
                );
            }
            _ => {}
        }
        if !(100..=600_000).contains(&self.session_ttl_ms) {
            return refuse("session-ttl-ms", "100 to 600000".to_owned());
        }
        if self.raft_heartbeat_ms == 0
            || self.raft_heartbeat_ms.saturating_mul(2) > self.raft_election_min_ms
            || self.raft_election_min_ms >= self.raft_election_max_ms
        {
            return refuse(
                "raft-election-min-ms",
                "0 < 2 * raft-heartbeat-ms <= raft-election-min-ms < raft-election-max-ms".to_owned(),
            );
        }
        for (key, value) in [
            ("tick-ms", self.tick_ms),
            ("raft-election-max-ms", self.raft_election_max_ms),
            ("rebalance-after-ms", self.rebalance_after_ms),
        ] {
            if !(1..=600_000).contains(&value) {
                return refuse(key, "1 to 600000".to_owned());
            }
        }
        if !(1..=7 * 24 * 3_600_000).contains(&self.purge_wait_ms) {
            return refuse("purge-wait-ms", "1 to 604800000".to_owned());
        }
        if !(1_000..=30 * 24 * 3_600_000).contains(&self.lost_after_ms) {
            return refuse("lost-after-ms", "1000 to 2592000000 (30 days)".to_owned());
        }
        if !(100..=3_600_000).contains(&self.repair_grace_ms) {
            return refuse("repair-grace-ms", "100 to 3600000".to_owned());
        }
        if !(1_000..=365 * 24 * 3_600_000).contains(&self.compare_every_ms) {
            return refuse("compare-every-ms", "1000 to 31536000000 (a year)".to_owned());
        }
        if !(1..=1_000).contains(&self.repairs_per_bookie) {
            return refuse("repairs-per-bookie", "1 to 1000".to_owned());
        }
        if !(10..=10_000_000).contains(&self.snapshot_every) {
            return refuse("snapshot-every", "10 to 10000000".to_owned());
        }
        Ok(())
    }

    pub(crate) fn session_ttl(&self) -> Duration {
        Duration::from_millis(self.session_ttl_ms)
    }
}

/// Whether this looks like `host:port`.
pub(crate) fn is_address(text: &str) -> bool {
    text.len() <= 262
        && text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty()
                && port.parse::<u16>().is_ok_and(|p| p != 0)
                && !host.contains(char::is_whitespace)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_bad_values_are_named() {
        MetaConfig::default().check().unwrap();
        let refused = |change: fn(&mut MetaConfig)| {
            let mut c = MetaConfig::default();
            change(&mut c);
            c.check().unwrap_err().to_string()
        };
        assert!(refused(|c| c.advertise = Some("meta-0".into())).contains("advertise"));
        assert!(refused(|c| c.listen = "0.0.0.0:0".parse().unwrap()).contains("advertise"));
        assert!(refused(|c| c.raft_heartbeat_ms = 400).contains("election"));
        assert!(refused(|c| c.session_ttl_ms = 1).contains("session-ttl-ms"));
    }
}
