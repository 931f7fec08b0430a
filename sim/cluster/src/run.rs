//! One run: the cluster comes up, clients work, faults come as planned, all is healed, and everything is checked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use parking_lot::Mutex;
use tidemill_runtime::io::CrashPlan;
use tokio::sync::watch;
use turmoil::Sim;

use crate::{
    clients::{Clients, Stage},
    hosts::{Host, PORT, Role, Settings},
    plan::{Fault, Plan},
    set_now,
    trace::Trace,
    world::{Disks, Simulated},
};

/// The host of all clients.
const CLIENT: &str = "client";
/// Of one step of the simulation; all times are rounded to it.
const TICK: Duration = Duration::from_millis(4);
/// A run that takes longer has come to nothing.
const LONGEST: Duration = Duration::from_secs(900);
/// A process that ended by itself is started again after this time, as by whoever watches it.
const RESTART: Duration = Duration::from_millis(1_500);

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Simulated time that it took.
    pub took: Duration,
    /// Records that were sent.
    pub records: usize,
    /// Copies that were compared at the end.
    pub copies: u64,
}

/// Runs a plan.
///
/// # Errors
/// What must hold did not.
pub fn run(plan: &Plan, trace: &Trace) -> Result<Outcome> {
    let disks = Disks::default();
    tidemill_runtime::world::enter(Arc::new(Simulated { disks: disks.clone() }));
    let mut sim = turmoil::Builder::new()
        .simulation_duration(LONGEST + Duration::from_secs(10))
        .tick_duration(TICK)
        .min_message_latency(Duration::from_micros(200))
        .max_message_latency(plan.latency)
        .tcp_capacity(4096)
        .enable_random_order()
        .rng_seed(plan.seed)
        .build();
    let settings = Settings {
        meta: plan.metas().iter().map(|m| format!("{m}:{PORT}")).collect(),
        roll: plan.roll,
        snapshot_every: plan.snapshot_every,
    };
    let mut hosts = BTreeMap::new();
    for (name, role) in roles(plan) {
        let seed = plan.seed.wrapping_mul(31).wrapping_add(hosts.len() as u64 + 1);
        let host = Host::new(&name, role, seed, &settings, &disks, trace);
        let software = host.clone();
        sim.host(name.as_str(), move || {
            let software = software.clone();
            async move { Ok(software.run().await?) }
        });
        hosts.insert(name, host);
    }
    let (stage, seen) = watch::channel(Stage::Boot);
    let done = Arc::new(Mutex::new(None));
    let clients = Clients { plan: plan.clone(), stage: stage.clone(), seen, trace: trace.clone() };
    let result = done.clone();
    sim.client(CLIENT, async move {
        let outcome = clients.run().await;
        *result.lock() = Some(outcome);
        Ok(())
    });
    let mut faults = Faults {
        sim,
        hosts,
        trace: trace.clone(),
        down: BTreeSet::new(),
        restarts: Vec::new(),
        loaded: None,
        next: 0,
    };
    let took = faults.drive(plan, &stage, &done)?;
    let (records, copies) = done.lock().take().ok_or_else(|| anyhow!("the clients did not end"))??;
    Ok(Outcome { took, records, copies })
}

fn roles(plan: &Plan) -> Vec<(String, Role)> {
    let of = |names: Vec<String>, role| names.into_iter().map(move |n| (n, role));
    of(plan.metas(), Role::Meta)
        .chain(of(plan.bookie_names(), Role::Bookie))
        .chain(of(plan.broker_names(), Role::Broker))
        .collect()
}

/// Who makes things go wrong, and right again.
struct Faults<'a> {
    sim: Sim<'a>,
    hosts: BTreeMap<String, Host>,
    trace: Trace,
    /// Hosts that run nothing, because a fault says so.
    down: BTreeSet<String>,
    /// Hosts that ended by themselves, and when they are started again.
    restarts: Vec<(Duration, String)>,
    /// When the load ran.
    loaded: Option<Duration>,
    next: usize,
}

type Done = Arc<Mutex<Option<Result<(usize, u64)>>>>;

impl Faults<'_> {
    fn drive(&mut self, plan: &Plan, stage: &watch::Sender<Stage>, done: &Done) -> Result<Duration> {
        loop {
            let now = self.sim.elapsed();
            set_now(now);
            if done.lock().is_some() {
                return Ok(now);
            }
            if now > LONGEST {
                bail!("not at its end after {LONGEST:?} of simulated time");
            }
            self.restart(now);
            let at = *stage.borrow();
            if at == Stage::Loaded {
                let begin = *self.loaded.get_or_insert(now);
                while let Some((_, fault)) =
                    plan.faults.get(self.next).filter(|(at, _)| begin + *at <= now && *at < plan.heal_at)
                {
                    self.next += 1;
                    self.apply(fault);
                }
                if now >= begin + plan.heal_at {
                    self.heal();
                    stage.send_replace(Stage::Healed);
                }
            }
            self.sim.step().map_err(|e| anyhow!("the simulation ended: {e}"))?;
        }
    }

    /// Starts what ended by itself.
    fn restart(&mut self, now: Duration) {
        for name in self.hosts.keys() {
            let watched = !self.down.contains(name) && !self.restarts.iter().any(|(_, n)| n == name);
            if watched && !self.sim.is_host_running(name.as_str()) {
                self.restarts.push((now + RESTART, name.clone()));
            }
        }
        let (due, later) = std::mem::take(&mut self.restarts).into_iter().partition(|(at, _)| *at <= now);
        self.restarts = later;
        let due: Vec<(Duration, String)> = due;
        for (_, name) in due {
            if !self.down.contains(&name) {
                self.start(&name);
            }
        }
    }

    fn start(&mut self, name: &str) {
        if self.sim.is_host_running(name) {
            return;
        }
        self.trace.line(format_args!("fault: start {name}"));
        // What the last process left open is closed, and what it wrote is still there.
        if let Some(host) = self.hosts.get(name) {
            host.lose_power(CrashPlan::KeepAll);
        }
        self.sim.bounce(name);
    }

    /// The process is gone.
    fn end(&mut self, name: &str) {
        self.down.insert(name.to_owned());
        self.sim.crash(name);
    }

    fn apply(&mut self, fault: &Fault) {
        self.trace.line(format_args!("fault: {fault:?}"));
        match fault {
            Fault::Cut(a, b) => self.sim.partition(a.as_str(), b.as_str()),
            Fault::CutOneWay(a, b) => self.sim.partition_oneway(a.as_str(), b.as_str()),
            Fault::Hold(a, b) => self.sim.hold(a.as_str(), b.as_str()),
            Fault::Repair(a, b) => self.repair(a, b),
            Fault::Late(a, b, most) => self.sim.set_link_max_message_latency(a.as_str(), b.as_str(), *most),
            Fault::Kill(name) => {
                self.with(name, |h| h.lose_power(CrashPlan::KeepAll));
                self.end(name);
            }
            Fault::PowerLoss(name, plan) => {
                self.with(name, |h| h.lose_power(*plan));
                self.end(name);
            }
            Fault::Wipe(name, seed) => {
                self.with(name, |h| h.wipe(*seed));
                self.end(name);
            }
            Fault::Stop(name) => {
                self.down.insert(name.clone());
                self.with(name, Host::stop);
            }
            Fault::Start(name) => {
                self.down.remove(name);
                if self.sim.is_host_running(name.as_str()) {
                    // It was told to stop and has not yet: it will be started when it has ended.
                    return;
                }
                self.start(name);
            }
            Fault::Pause(name) => {
                self.with(name, |h| h.clock.freeze(true));
                for other in self.others(name) {
                    self.sim.hold(name.as_str(), other.as_str());
                }
            }
            Fault::Wake(name, slept) => {
                self.with(name, |h| h.clock.thaw(*slept));
                for other in self.others(name) {
                    self.sim.release(name.as_str(), other.as_str());
                }
            }
            Fault::DiskError(name, kind, after) => self.with(name, |h| {
                let error = std::io::ErrorKind::Other;
                h.disk().inject(tidemill_runtime::io::Fault { kind: *kind, after: *after, error });
            }),
            Fault::Slow(name, extra) => self.with(name, |h| h.delay.slow(*extra)),
            Fault::Full(name, left) => self.with(name, |h| h.fill(*left)),
            Fault::Room(name) => self.with(name, Host::make_room),
            Fault::Flip(name, number) => self.with(name, |h| h.flip(*number)),
            Fault::Jump(name, ms) => self.with(name, |h| h.clock.jump(*ms)),
            Fault::Skew(name, ppm) => self.with(name, |h| h.clock.skew(*ppm)),
        }
    }

    fn with(&self, name: &str, f: impl FnOnce(&Host)) {
        if let Some(host) = self.hosts.get(name) {
            f(host);
        }
    }

    fn others(&self, name: &str) -> Vec<String> {
        self.hosts.keys().filter(|n| *n != name).cloned().chain([CLIENT.to_owned()]).collect()
    }

    fn repair(&self, a: &str, b: &str) {
        self.sim.repair(a, b);
        self.sim.release(a, b);
        self.sim.set_link_max_message_latency(a, b, Duration::from_millis(5));
    }

    /// Everything works again and everybody runs.
    fn heal(&mut self) {
        self.trace.line(format_args!("fault: everything is healed"));
        let names: Vec<String> = self.hosts.keys().cloned().collect();
        for (i, a) in names.iter().enumerate() {
            for b in names[i + 1..].iter().map(String::as_str).chain([CLIENT]) {
                self.repair(a, b);
            }
        }
        self.down.clear();
        for (name, host) in &self.hosts {
            host.clock.heal();
            host.delay.slow(Duration::ZERO);
            host.make_room();
            host.disk().clear_faults();
            self.trace.line(format_args!("{name} is well"));
        }
        for name in names {
            self.start(&name);
        }
    }
}
