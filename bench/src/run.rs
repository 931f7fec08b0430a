//! Rounds over all systems.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;

use crate::{
    args::Args,
    files, limits,
    outcome::{Outcome, as_f64},
    process,
    report::{self, Results, SystemResults},
    system::{self, Running, System},
    work::{self, Kind, Work},
};

/// Longest run of a client beyond its own time.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long an idle system is left alone before its memory is read.
const IDLE: Duration = Duration::from_secs(3);

/// Does everything.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    let work = work::all(args.quick, &args.only);
    let mut results = Results::new(args, &work);
    let mut systems = Vec::new();
    for system in system::all(args)? {
        println!("fetching {}", system.name());
        match system.fetch() {
            Ok(()) => {
                results.systems.push(SystemResults::new(system.name(), system.synced()));
                systems.push(system);
            }
            // Said in the results, so that nobody takes it for beaten.
            Err(e) => results.missing.push((system.name(), format!("{e:#}"))),
        }
    }
    if !args.no_limits {
        println!("limits of the machine");
        files::emptied(&args.data)?;
        results.limits = limits::measure(&args.data, args.quick)?;
    }
    for round in 1..=args.rounds() {
        for (at, system) in systems.iter().enumerate() {
            println!("round {round} of {}: {}", args.rounds(), system.name());
            let outcome = one(args, system.as_ref(), &work, &mut results.systems[at]);
            if let Err(e) = outcome {
                eprintln!("{}: {e:#}", system.name());
                results.systems[at].failures.push(format!("round {round}: {e:#}"));
            }
            files::removed(&args.data)?;
            report::write(&args.out, &results)?;
        }
    }
    print!("{}", report::table(&results));
    Ok(())
}

/// All work once on one system.
fn one(args: &Args, system: &dyn System, work: &[Work], results: &mut SystemResults) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut running = system.start()?;
    results.start_seconds.push(begin.elapsed().as_secs_f64());
    std::thread::sleep(IDLE);
    results.idle_rss_bytes.push(process::cost(&running.servers).rss_bytes);
    let mut written: BTreeMap<String, u64> = BTreeMap::new();
    for w in work {
        let had = written.get(&w.topic()).copied().unwrap_or(0);
        match piece(args, system, &mut running, w, had) {
            Ok(outcome) => {
                println!("  {:<32} {}", w.name(), report::short(w, &outcome));
                if w.kind == Kind::Throughput {
                    // The reader stops there; records of the warm-up are more than that.
                    written.insert(w.topic(), outcome.printed.records);
                }
                results.runs.entry(w.name()).or_default().push(outcome);
            }
            Err(e) => {
                eprintln!("  {}: {e:#}", w.name());
                results.failures.push(format!("{}: {e:#}", w.name()));
            }
        }
    }
    drop(running);
    Ok(())
}

fn piece(
    args: &Args,
    system: &dyn System,
    running: &mut Running,
    work: &Work,
    written: u64,
) -> anyhow::Result<Outcome> {
    if work.kind != Kind::CatchUp {
        system.create(running, work)?;
    }
    let client = system.client(running, work, written);
    let before = process::cost(&running.servers);
    let limit = work.warmup + work.time + PATIENCE;
    let data = args.data.clone();
    let cap = args.cap << 30;
    let ran = process::run(client.command, &mut running.servers, limit, || full(&data, cap))?;
    let after = process::cost(&running.servers);
    let at = ran.stdout.find('{').unwrap_or(0);
    let printed: crate::outcome::Printed =
        serde_json::from_str(&ran.stdout[at..]).with_context(|| format!("not a result: {}", ran.stdout))?;
    // The costs are of the whole run, the records of the part behind the warm-up: at a steady rate they go with time.
    let measured = work.time.as_secs_f64();
    let share = match work.kind {
        Kind::CatchUp => 1.0,
        _ => (measured + work.warmup.as_secs_f64()) / measured,
    };
    Ok(Outcome {
        all_records: as_f64(printed.records) * share,
        printed,
        settings: client.settings,
        server_cpu_seconds: after.cpu_seconds - before.cpu_seconds,
        client_cpu_seconds: ran.cpu_seconds,
        written_bytes: after.written_bytes - before.written_bytes,
        peak_rss_bytes: ran.peak_server_rss.max(after.rss_bytes),
        cut_short: ran.stopped,
    })
}

/// Whether the directory, or the disk, has no more room for this.
fn full(data: &Path, cap: u64) -> bool {
    let free = rustix::fs::statvfs(data).map_or(u64::MAX, |s| s.f_bavail * s.f_frsize);
    free < 4 << 30 || files::used(data) > cap
}
