//! The hosts of a cluster: what each runs, and what of it survives a crash.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tidemill_bookie::BookieConfig;
use tidemill_broker::BrokerConfig;
use tidemill_meta::MetaConfig;
use tidemill_runtime::{
    Clock, Health, Metrics, Supervisor,
    io::{CrashPlan, Disk, OpenMode, SimDisk},
};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::HostClock,
    trace::Trace,
    world::{Delay, Disks},
};

/// The port of every role.
pub const PORT: u16 = 7450;
/// Bytes of a simulated disk.
const DISK_BYTES: u64 = 256 << 20;

/// What a host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A member of the quorum.
    Meta,
    /// A bookie.
    Bookie,
    /// A broker.
    Broker,
}

/// A host. Clones share it.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name in the network.
    pub name: String,
    /// What it runs.
    pub role: Role,
    /// Its clocks.
    pub clock: HostClock,
    /// How slow its disk is.
    pub delay: Delay,
    disk: Arc<Mutex<SimDisk>>,
    /// Of the process that runs now: told to stop in order.
    stop: Arc<Mutex<CancellationToken>>,
    settings: Settings,
    trace: Trace,
    disks: Disks,
}

/// What all hosts of a cluster share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Addresses of the quorum.
    pub meta: Vec<String>,
    /// Ledgers are rolled after this time.
    pub roll: Duration,
    /// Entries of the raft log between two snapshots.
    pub snapshot_every: u64,
}

impl Host {
    /// A host with an empty disk.
    #[must_use]
    pub fn new(name: &str, role: Role, seed: u64, settings: &Settings, disks: &Disks, trace: &Trace) -> Self {
        Self {
            name: name.to_owned(),
            role,
            clock: HostClock::default(),
            delay: Delay::new(seed, Duration::from_millis(2)),
            disk: Arc::new(Mutex::new(SimDisk::new(seed, DISK_BYTES))),
            stop: Arc::default(),
            settings: settings.clone(),
            trace: trace.clone(),
            disks: disks.clone(),
        }
    }

    /// The disk as it is now.
    #[must_use]
    pub fn disk(&self) -> SimDisk {
        self.disk.lock().clone()
    }

    /// The machine loses power or the process is killed: what is not synced goes as `plan` says. The process must be ended at once.
    pub fn lose_power(&self, plan: CrashPlan) {
        self.disk.lock().crash(plan);
    }

    /// Another, empty disk. The process must be ended at once.
    pub fn wipe(&self, seed: u64) {
        let mut disk = self.disk.lock();
        disk.crash(CrashPlan::LoseAll);
        *disk = SimDisk::new(seed, DISK_BYTES);
    }

    /// The disk has its usual size again.
    pub fn make_room(&self) {
        self.disk.lock().set_total(DISK_BYTES);
    }

    /// The disk has only so many bytes left.
    pub fn fill(&self, left: u64) {
        let disk = self.disk();
        if let Ok(space) = disk.space(std::path::Path::new("/")) {
            disk.set_total(space.total - space.free + left);
        }
    }

    /// Flips one bit of a segment, chosen by `number`.
    pub fn flip(&self, number: u64) {
        let disk = self.disk();
        let dir = std::path::Path::new("/data");
        let mut files: Vec<_> =
            disk.list(dir).unwrap_or_default().into_iter().filter(|f| !f.is_dir && f.len > 0).collect();
        files.retain(|f| f.name.ends_with(".seg"));
        if files.is_empty() {
            return;
        }
        let file = &files[usize::try_from(number % files.len() as u64).unwrap_or(0)];
        let path = dir.join(&file.name);
        // Segments are made at their full size: only what was written is of interest.
        let written = written(&disk, &path, file.len);
        if written == 0 {
            return;
        }
        let bit = (number / files.len() as u64) % (written * 8);
        let flipped = disk.flip_bit(&path, bit);
        self.trace.line(format_args!("{}: bit {bit} of {}: {flipped:?}", self.name, file.name));
    }

    /// Tells the process to stop in order; it ends by itself.
    pub fn stop(&self) {
        self.stop.lock().cancel();
    }

    /// Runs the role until it is stopped or cannot go on.
    ///
    /// # Errors
    /// It did not start.
    pub async fn run(self) -> anyhow::Result<()> {
        self.disks.mine(self.delay.clone());
        let stop = CancellationToken::new();
        *self.stop.lock() = stop.clone();
        let sup = Supervisor::new(Health::new());
        let ended = self.serve(&sup, &stop).await;
        sup.stop().await;
        match (&ended, sup.fatal_reason()) {
            (Err(e), _) => self.trace.line(format_args!("{} did not start: {e:#}", self.name)),
            (_, Some(why)) => self.trace.line(format_args!("{} ended: {why}", self.name)),
            (Ok(()), None) => self.trace.line(format_args!("{} stopped", self.name)),
        }
        Ok(())
    }

    async fn serve(&self, sup: &Supervisor, stop: &CancellationToken) -> anyhow::Result<()> {
        let metrics = Metrics::new();
        let listen = SocketAddr::from(([0, 0, 0, 0], PORT));
        let advertise = Some(format!("{}:{PORT}", self.name));
        let (name, meta) = (self.name.clone(), self.settings.meta.clone());
        let disk: Arc<dyn Disk> = Arc::new(self.disk());
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let ends = async {
            tokio::select! {
                () = stop.cancelled() => true,
                () = sup.token().cancelled() => false,
            }
        };
        match self.role {
            Role::Meta => {
                let config = MetaConfig {
                    data_dir: PathBuf::from("/data"),
                    listen,
                    advertise,
                    name,
                    tick_ms: 1_000,
                    snapshot_every: self.settings.snapshot_every,
                    rebalance_after_ms: 1_000,
                    purge_wait_ms: 5_000,
                    lost_after_ms: 20_000,
                    repair_grace_ms: 3_000,
                    compare_every_ms: 10_000,
                    ..MetaConfig::default()
                };
                let handle = tidemill_meta::start_on(disk, clock, config, sup, &metrics).await?;
                if ends.await {
                    handle.stop().await;
                }
            }
            Role::Bookie => {
                let config = BookieConfig {
                    data_dirs: vec![PathBuf::from("/data")],
                    listen,
                    advertise,
                    name,
                    meta,
                    segment_bytes: 2 << 20,
                    group_bytes: 256 << 10,
                    max_entry_bytes: 512 << 10,
                    add_queue_bytes: 8 << 20,
                    connection_add_bytes: 8 << 20,
                    read_in_flight_bytes: 8 << 20,
                    index_cache_bytes: 4 << 20,
                    recent_bytes: 64 << 10,
                    disk_reserve_bytes: 256 << 10,
                    gc_pass_ms: 3_000,
                    scrub_interval_ms: 5_000,
                    scrub_bytes_per_second: 1 << 30,
                    ..BookieConfig::default()
                };
                let handle = tidemill_bookie::start_on(disk, clock, config, sup, &metrics).await?;
                if ends.await {
                    handle.stop().await;
                }
            }
            Role::Broker => {
                let config = BrokerConfig {
                    listen,
                    advertise,
                    name,
                    meta,
                    memory_bytes: 1 << 30,
                    ensemble_change_delay_ms: 1_500,
                    ensemble_change_delay_restart_ms: 6_000,
                    roll_ms: u64::try_from(self.settings.roll.as_millis()).unwrap_or(u64::MAX),
                    idle_close_ms: 3_000,
                    time_settle_ms: 5_000,
                    internal_partitions: 1,
                    drain_deadline_ms: 3_000,
                    ..BrokerConfig::default()
                };
                let handle = tidemill_broker::start_with(clock, config, sup, &metrics).await?;
                if ends.await {
                    handle.stop().await;
                }
            }
        }
        Ok(())
    }
}

/// Bytes up to the last one of a file that is not zero.
fn written(disk: &SimDisk, path: &std::path::Path, len: u64) -> u64 {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    let read = disk.open(path, OpenMode::Read).and_then(|f| f.read_at(&mut bytes, 0)).unwrap_or(0);
    bytes[..read].iter().rposition(|b| *b != 0).map_or(0, |last| last as u64 + 1)
}
