//! What a bookie is told.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use tidemill_runtime::defaults;
use tidemill_types::Endpoint;

use crate::error::BookieError;

/// Configuration of one bookie. Keys are flat and kebab-case; an unknown key is an error. Every number starts from
/// [`tidemill_runtime::defaults`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BookieConfig {
    /// One folder per disk: the lanes. Two of them on one disk only cost speed.
    pub data_dirs: Vec<PathBuf>,
    /// Where the gRPC server listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// `host:port` under which brokers reach it; absent = the bound address.
    pub advertise: Option<String>,
    /// Name for people, such as `bookie-0`; not an identity.
    pub name: String,
    /// Failure zone; empty when unknown.
    pub zone: String,
    /// `host:port` of the members of the metadata quorum.
    pub meta: Vec<String>,
    /// Size of a segment file, bytes.
    pub segment_bytes: u64,
    /// A commit group closes at this size, bytes (one larger entry goes alone).
    pub group_bytes: usize,
    /// Largest entry, header included, bytes.
    pub max_entry_bytes: usize,
    /// Adds waiting for a disk, per lane, bytes; past it the answer is `Overloaded`.
    pub add_queue_bytes: usize,
    /// Adds accepted from one connection and not answered yet, bytes; past it the answer is `Overloaded`.
    pub connection_add_bytes: usize,
    /// Read answers in flight per connection, bytes.
    pub read_in_flight_bytes: usize,
    /// Control requests under way at once, all connections together.
    pub control_queue: usize,
    /// Cache of sealed index blocks, bytes.
    pub index_cache_bytes: usize,
    /// Newest entries that are kept in memory, per lane, bytes.
    pub recent_bytes: usize,
    /// Linearizable reads under way at once for first touches (R27).
    pub first_touch_reads: usize,
    /// No plain adds above this share of the fullest disk, per cent.
    pub disk_read_only_percent: u8,
    /// Plain adds again below this share, per cent.
    pub disk_read_write_percent: u8,
    /// No further segment is opened above this share, for recovery adds neither, per cent.
    pub disk_recovery_stop_percent: u8,
    /// Kept per lane for fences, collections and recovery adds on a full disk, bytes; at most a segment.
    pub disk_reserve_bytes: u64,
    /// A sealed segment with less than this share of live bytes is rewritten, per cent.
    pub rewrite_live_percent: u8,
    /// Most bytes a second that rewriting reads.
    pub rewrite_bytes_per_second: u64,
    /// Most bytes a second that repairs copy to this bookie, all of them together.
    pub repair_bytes_per_second: u64,
    /// Time between two passes of garbage collection, ms.
    pub gc_pass_ms: u64,
    /// Time between the starts of two scrubs of everything at rest, ms.
    pub scrub_interval_ms: u64,
    /// Most bytes a second that scrubbing reads.
    pub scrub_bytes_per_second: u64,
}

impl Default for BookieConfig {
    fn default() -> Self {
        Self {
            data_dirs: vec![PathBuf::from("tidemill-data/bookie")],
            listen: SocketAddr::from(([127, 0, 0, 1], defaults::PORT_GRPC)),
            advertise: None,
            name: "bookie-0".to_owned(),
            zone: String::new(),
            meta: vec![format!("127.0.0.1:{}", defaults::PORT_GRPC)],
            segment_bytes: defaults::SEGMENT_BYTES,
            group_bytes: defaults::GROUP_BYTES,
            max_entry_bytes: defaults::MAX_ENTRY_BYTES,
            add_queue_bytes: defaults::ADD_QUEUE_BYTES,
            connection_add_bytes: defaults::ADD_QUEUE_BYTES,
            read_in_flight_bytes: defaults::READ_IN_FLIGHT_BYTES,
            control_queue: defaults::CONTROL_QUEUE,
            index_cache_bytes: defaults::SEALED_INDEX_CACHE,
            recent_bytes: defaults::RECENT_BYTES,
            first_touch_reads: 32,
            disk_read_only_percent: defaults::DISK_READ_ONLY_PERCENT,
            disk_read_write_percent: defaults::DISK_READ_WRITE_PERCENT,
            disk_recovery_stop_percent: defaults::DISK_RECOVERY_STOP_PERCENT,
            disk_reserve_bytes: defaults::DISK_RESERVE_BYTES,
            rewrite_live_percent: defaults::REWRITE_LIVE_PERCENT,
            rewrite_bytes_per_second: 32 << 20,
            repair_bytes_per_second: defaults::REPAIR_BYTES_PER_SECOND,
            gc_pass_ms: u64::try_from(defaults::GC_PASS.as_millis()).unwrap_or(600_000),
            scrub_interval_ms: u64::try_from(defaults::SCRUB_INTERVAL.as_millis()).unwrap_or(604_800_000),
            scrub_bytes_per_second: defaults::SCRUB_BYTES_PER_SECOND,
        }
    }
}

/// Room for what stands beside the largest entry in a message: others up to the length at which a message is closed, and
/// the fields around them.
const MESSAGE_EXTRA: usize = 2 << 20;

impl BookieConfig {
    /// Largest gRPC message, bytes.
    pub(crate) fn max_message_bytes(&self) -> usize {
        self.max_entry_bytes + MESSAGE_EXTRA
    }

    /// Checks ranges and how the values fit together.
    ///
    /// # Errors
    /// [`BookieError::Config`] with the key and what is allowed.
    pub fn check(&self) -> Result<(), BookieError> {
        let refuse = |key: &'static str, why: String| Err(BookieError::Config { key, why });
        if self.data_dirs.is_empty() || self.data_dirs.len() > MAX_LANES {
            return refuse("data-dirs", format!("1 to {MAX_LANES} folders, one per disk"));
        }
        for (i, dir) in self.data_dirs.iter().enumerate() {
            if self.data_dirs[..i].contains(dir) {
                return refuse("data-dirs", format!("{} is named twice", dir.display()));
            }
        }
        if self.meta.is_empty() {
            return refuse("meta", "at least one host:port of the metadata quorum".to_owned());
        }
        if !(1..=MAX_NAME).contains(&self.name.len()) {
            return refuse("name", format!("1 to {MAX_NAME} bytes"));
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
        let (low, high, stop) =
            (self.disk_read_write_percent, self.disk_read_only_percent, self.disk_recovery_stop_percent);
        if !(low < high && high < stop && stop <= 100) {
            return refuse(
                "disk-read-only-percent",
                format!("read-write ({low}) < read-only ({high}) < recovery-stop ({stop}) <= 100"),
            );
        }
        if self.disk_reserve_bytes < MIN_RESERVE {
            return refuse("disk-reserve-bytes", format!("from {MIN_RESERVE} bytes"));
        }
        if self.rewrite_live_percent > 90 {
            return refuse("rewrite-live-percent", "0 to 90".to_owned());
        }
        let entry = self.max_entry_bytes;
        if !(1 << 10..=MAX_ENTRY_CEILING).contains(&entry) {
            return refuse("max-entry-bytes", format!("1 KiB to {MAX_ENTRY_CEILING} bytes"));
        }
        if self.add_queue_bytes < entry
            || self.connection_add_bytes < entry
            || self.read_in_flight_bytes < entry
        {
            return refuse(
                "add-queue-bytes",
                "add-queue-bytes, connection-add-bytes and read-in-flight-bytes must hold one largest entry"
                    .to_owned(),
            );
        }
        let least = (entry as u64 + self.group_bytes as u64).saturating_mul(2);
        if self.segment_bytes < least {
            return refuse(
                "segment-bytes",
                format!(
                    "{} is given, allowed: from {least}, twice the sum of group-bytes and max-entry-bytes",
                    self.segment_bytes
                ),
            );
        }
        for (key, value) in [
            ("group-bytes", self.group_bytes as u64),
            ("control-queue", self.control_queue as u64),
            ("first-touch-reads", self.first_touch_reads as u64),
            ("rewrite-bytes-per-second", self.rewrite_bytes_per_second),
            ("repair-bytes-per-second", self.repair_bytes_per_second),
            ("gc-pass-ms", self.gc_pass_ms),
            ("scrub-interval-ms", self.scrub_interval_ms),
            ("scrub-bytes-per-second", self.scrub_bytes_per_second),
        ] {
            if value == 0 {
                return refuse(key, "above 0".to_owned());
            }
        }
        Ok(())
    }

    /// Time between two passes of garbage collection.
    #[must_use]
    pub fn gc_pass(&self) -> Duration {
        Duration::from_millis(self.gc_pass_ms)
    }

    /// Time between the starts of two scrubs.
    #[must_use]
    pub fn scrub_interval(&self) -> Duration {
        Duration::from_millis(self.scrub_interval_ms)
    }

    /// What is told to others as the address, given the bound one.
    #[must_use]
    pub fn endpoint(&self, bound: SocketAddr) -> Endpoint {
        self.advertise
            .as_deref()
            .and_then(parse_endpoint)
            .unwrap_or_else(|| Endpoint { host: bound.ip().to_string(), port: bound.port() })
    }
}

/// Most lanes of a bookie.
const MAX_LANES: usize = 64;
/// Least reserve of a lane, bytes: some groups of fences and the index behind them.
const MIN_RESERVE: u64 = 64 << 10;
/// Longest name, bytes.
const MAX_NAME: usize = 253;
/// Ceiling of the largest entry, bytes: the format's own ceiling of a body, less room for the header.
const MAX_ENTRY_CEILING: usize = 64 << 20;

/// `host:port`, an IPv6 host in brackets. Port 0 stands for "as bound" nowhere, so it is refused.
fn parse_endpoint(text: &str) -> Option<Endpoint> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().ok().filter(|&p| p != 0)?;
    (!host.is_empty()).then(|| Endpoint { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use tidemill_runtime::config::Layers;

    use super::*;

    #[test]
    fn defaults_are_valid_and_survive_the_layers() {
        let d = BookieConfig::default();
        d.check().unwrap();
        let mut layers = Layers::new(&d).unwrap();
        layers.flag("data-dirs", "/a,/b").unwrap();
        layers.flag("advertise", "bookie-0.bookie:7450").unwrap();
        let c: BookieConfig = layers.build().unwrap();
        assert_eq!(c.data_dirs, [PathBuf::from("/a"), "/b".into()]);
        assert_eq!(
            c.endpoint("127.0.0.1:9".parse().unwrap()),
            Endpoint { host: "bookie-0.bookie".into(), port: 7450 }
        );
        assert!(layers.flag("data-dir", "/a").is_err());
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        let refused = |change: fn(&mut BookieConfig)| {
            let mut c = BookieConfig::default();
            change(&mut c);
            c.check().unwrap_err().to_string()
        };
        assert!(refused(|c| c.data_dirs.clear()).contains("data-dirs"));
        assert!(refused(|c| c.data_dirs = vec!["a".into(), "a".into()]).contains("named twice"));
        assert!(refused(|c| c.disk_read_write_percent = 96).contains("disk-read-only-percent"));
        assert!(refused(|c| c.segment_bytes = 1 << 20).contains("segment-bytes"));
        assert!(refused(|c| c.advertise = Some("nonsense".into())).contains("advertise"));
        assert!(refused(|c| c.listen = "0.0.0.0:1".parse().unwrap()).contains("advertise"));
        assert!(refused(|c| c.gc_pass_ms = 0).contains("gc-pass-ms"));
        assert!(refused(|c| c.disk_reserve_bytes = 4096).contains("disk-reserve-bytes"));
    }

    #[test]
    fn endpoints() {
        assert_eq!(parse_endpoint("[::1]:7").unwrap(), Endpoint { host: "::1".into(), port: 7 });
        assert!(
            parse_endpoint(":7").is_none()
                && parse_endpoint("a:0").is_none()
                && parse_endpoint("a").is_none()
        );
    }
}
