//! What a seed decides before the run: the size of the cluster, the load, and which fault comes when.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use tidemill_runtime::io::{CrashPlan, OpKind};

/// How long faults come.
const FAULTS_FOR: Duration = Duration::from_secs(25);

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Bookies.
    pub bookies: usize,
    /// Brokers.
    pub brokers: usize,
    /// Partitions of the topic.
    pub partitions: u32,
    /// Producers.
    pub producers: u32,
    /// Of each producer between two records.
    pub pause: Duration,
    /// Ledgers are rolled after this time.
    pub roll: Duration,
    /// Entries of the raft log between two snapshots.
    pub snapshot_every: u64,
    /// Slowest message.
    pub latency: Duration,
    /// The faults, in order; times count from the moment at which the load runs.
    pub faults: Vec<(Duration, Fault)>,
    /// When everything is healed.
    pub heal_at: Duration,
}

/// A fault. Hosts by name.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing gets through between the two.
    Cut(String, String),
    /// Nothing gets through from the first to the second.
    CutOneWay(String, String),
    /// Messages between the two wait.
    Hold(String, String),
    /// The link works again; what was held comes.
    Repair(String, String),
    /// Messages between the two take up to so long: later ones overtake earlier ones.
    Late(String, String, Duration),
    /// The process ends without a word and comes back; what was written stays.
    Kill(String),
    /// The machine loses power; what was not synced goes as the plan says.
    PowerLoss(String, CrashPlan),
    /// The process is told to stop in order.
    Stop(String),
    /// The host is started again.
    Start(String),
    /// The process stands still: its clocks, and everything that it sends or gets.
    Pause(String),
    /// It goes on.
    Wake(String, Duration),
    /// The n-th next operation of this kind fails.
    DiskError(String, OpKind, u64),
    /// Each operation of the disk takes so much longer.
    Slow(String, Duration),
    /// The disk is full but for so many bytes.
    Full(String, u64),
    /// There is room again.
    Room(String),
    /// A bit of a segment flips, at rest: chosen by the number.
    Flip(String, u64),
    /// The disk is replaced by an empty one while the process is down.
    Wipe(String, u64),
    /// The wall clock jumps, ms.
    Jump(String, i64),
    /// The clock runs too fast by so many parts per million.
    Skew(String, i64),
}

/// What kinds of faults a run has: each seed leaves some out, so that others come to bear.
struct Kinds {
    network: bool,
    crash: bool,
    pause: bool,
    disk: bool,
    loss: bool,
    clock: bool,
}

impl Plan {
    /// The run of a seed; without `faults` nothing goes wrong.
    #[must_use]
    pub fn new(seed: u64, faults: bool) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut plan = Self {
            seed,
            bookies: rng.random_range(3..=5),
            brokers: rng.random_range(2..=3),
            partitions: rng.random_range(1..=4),
            producers: rng.random_range(1..=3),
            pause: Duration::from_millis(rng.random_range(20..=120)),
            roll: Duration::from_millis(rng.random_range(1_000..=15_000)),
            snapshot_every: rng.random_range(20..=400),
            latency: Duration::from_millis(rng.random_range(2..=30)),
            faults: Vec::new(),
            heal_at: FAULTS_FOR,
        };
        if !faults {
            plan.heal_at = Duration::from_secs(5);
            return plan;
        }
        let kinds = Kinds {
            network: rng.random_bool(0.6),
            crash: rng.random_bool(0.7),
            pause: rng.random_bool(0.4),
            disk: rng.random_bool(0.5),
            loss: rng.random_bool(0.3),
            clock: rng.random_bool(0.3),
        };
        let mut schedule = Schedule { rng, plan: &plan, kinds, faults: Vec::new(), victim: None };
        schedule.fill();
        let mut faults = schedule.faults;
        faults.sort_by_key(|(at, _)| *at);
        plan.faults = faults;
        plan
    }

    /// All bookies lose their disks at once: more than any promise covers, so the checks have to find it.
    pub fn sabotage(&mut self) {
        let at = self.heal_at / 2;
        self.faults = self.bookie_names().into_iter().map(|b| (at, Fault::Wipe(b, self.seed))).collect();
    }

    /// Names of the members of the quorum.
    #[must_use]
    pub fn metas(&self) -> Vec<String> {
        (0..3).map(|i| format!("meta-{i}")).collect()
    }

    /// Names of the bookies.
    #[must_use]
    pub fn bookie_names(&self) -> Vec<String> {
        (0..self.bookies).map(|i| format!("bookie-{i}")).collect()
    }

    /// Names of the brokers.
    #[must_use]
    pub fn broker_names(&self) -> Vec<String> {
        (0..self.brokers).map(|i| format!("broker-{i}")).collect()
    }

    /// All hosts.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        [self.metas(), self.bookie_names(), self.broker_names()].concat()
    }
}

struct Schedule<'a> {
    rng: StdRng,
    plan: &'a Plan,
    kinds: Kinds,
    faults: Vec<(Duration, Fault)>,
    /// The one bookie that may lose what it synced: one loss is what two acknowledged copies of three survive.
    victim: Option<String>,
}

impl Schedule<'_> {
    fn fill(&mut self) {
        let rate: u64 = self.rng.random_range(300..=3_000);
        let mut at = Duration::from_millis(self.rng.random_range(0..=2_000));
        while at < FAULTS_FOR {
            self.one(at);
            at += Duration::from_millis(self.rng.random_range(rate / 4..=rate));
        }
    }

    fn any(&mut self, names: &[String]) -> String {
        names.choose(&mut self.rng).cloned().unwrap_or_default()
    }

    fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(from..=to))
    }

    fn one(&mut self, at: Duration) {
        let (metas, bookies, all) = (self.plan.metas(), self.plan.bookie_names(), self.plan.names());
        let k = &self.kinds;
        let enabled: Vec<u8> =
            [(k.network, 0u8), (k.crash, 1), (k.pause, 2), (k.disk, 3), (k.loss, 4), (k.clock, 5)]
                .into_iter()
                .filter_map(|(on, kind)| on.then_some(kind))
                .collect();
        let Some(kind) = enabled.choose(&mut self.rng).copied() else { return };
        match kind {
            0 => self.network(at, &all),
            1 => {
                let host = self.any(&all);
                let down = self.ms(50, 6_000);
                let fault = match self.rng.random_range(0..5) {
                    0 => Fault::Stop(host.clone()),
                    1 | 2 => Fault::Kill(host.clone()),
                    3 => Fault::PowerLoss(host.clone(), CrashPlan::LoseAll),
                    _ => Fault::PowerLoss(host.clone(), CrashPlan::Torn),
                };
                self.faults.push((at, fault));
                self.faults.push((at + down, Fault::Start(host)));
            }
            2 => {
                let host = self.any(&all);
                let time = self.ms(200, 8_000);
                self.faults.push((at, Fault::Pause(host.clone())));
                self.faults.push((at + time, Fault::Wake(host, time)));
            }
            3 => self.disk(at, &[metas, bookies].concat()),
            4 => self.loss(at, &bookies),
            _ => {
                let host = self.any(&all);
                let fault = if self.rng.random_bool(0.5) {
                    Fault::Jump(host, self.rng.random_range(-3_600_000..=3_600_000))
                } else {
                    // Rates of clocks that are sick, and still within what the validity of sessions allows.
                    Fault::Skew(host, self.rng.random_range(-50_000..=50_000))
                };
                self.faults.push((at, fault));
            }
        }
    }

    fn network(&mut self, at: Duration, all: &[String]) {
        let (a, b) = (self.any(all), self.any(all));
        let time = self.ms(100, 8_000);
        if a == b {
            // Alone.
            for other in all.iter().filter(|o| **o != a) {
                self.faults.push((at, Fault::Cut(a.clone(), other.clone())));
                self.faults.push((at + time, Fault::Repair(a.clone(), other.clone())));
            }
            return;
        }
        let fault = match self.rng.random_range(0..4) {
            0 => Fault::Cut(a.clone(), b.clone()),
            1 => Fault::CutOneWay(a.clone(), b.clone()),
            2 => Fault::Hold(a.clone(), b.clone()),
            _ => Fault::Late(a.clone(), b.clone(), self.ms(50, 1_500)),
        };
        self.faults.push((at, fault));
        self.faults.push((at + time, Fault::Repair(a, b)));
    }

    fn disk(&mut self, at: Duration, with_disks: &[String]) {
        let host = self.any(with_disks);
        let time = self.ms(200, 5_000);
        match self.rng.random_range(0..4) {
            0 => {
                let kind = [
                    OpKind::Sync,
                    OpKind::Write,
                    OpKind::SyncDir,
                    OpKind::Create,
                    OpKind::Rename,
                    OpKind::Any,
                ]
                .choose(&mut self.rng)
                .copied()
                .unwrap_or(OpKind::Any);
                let after = self.rng.random_range(0..20);
                self.faults.push((at, Fault::DiskError(host, kind, after)));
            }
            1 | 2 => {
                let extra = self.ms(5, 2_500);
                self.faults.push((at, Fault::Slow(host.clone(), extra)));
                self.faults.push((at + time, Fault::Slow(host, Duration::ZERO)));
            }
            _ if host.starts_with("bookie") => {
                let left = self.rng.random_range(0..=4 << 20);
                self.faults.push((at, Fault::Full(host.clone(), left)));
                self.faults.push((at + time, Fault::Room(host)));
            }
            _ => {}
        }
    }

    fn loss(&mut self, at: Duration, bookies: &[String]) {
        let host = match self.victim.clone() {
            // The second loss would be another one before the first is repaired.
            Some(_) => return,
            None => self.any(bookies),
        };
        self.victim = Some(host.clone());
        if self.rng.random_bool(0.5) {
            for _ in 0..self.rng.random_range(1..=3) {
                let number = self.rng.random();
                self.faults.push((at, Fault::Flip(host.clone(), number)));
            }
        } else {
            let down = self.ms(200, 5_000);
            let seed = self.rng.random();
            self.faults.push((at, Fault::Wipe(host.clone(), seed)));
            self.faults.push((at + down, Fault::Start(host)));
        }
    }
}
