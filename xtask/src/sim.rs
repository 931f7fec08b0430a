//! `cargo xtask sim`: simulated clusters, one process per seed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::workspace::Workspace;

/// Seeds that once failed, one a line with what it showed.
const KEPT: &str = "sim/cluster/seeds.txt";

/// How a run tells of a rare situation.
const SOMETIMES: &str = "sometimes: ";
/// A run of so many seeds has to reach every rare situation.
const LONG: u64 = 300;

/// Flags of `cargo xtask sim`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seeds that are run, besides those that once failed
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// This seed alone
    #[arg(long)]
    seed: Option<u64>,
    /// The first of the seeds
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Runs at once; by default one per processor
    #[arg(long)]
    jobs: Option<usize>,
    /// No seed is begun after so many seconds
    #[arg(long)]
    within: Option<u64>,
    /// With --seed: where the trace is written
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Optimised: worth its build for many seeds
    #[arg(long)]
    release: bool,
}

/// Runs the seeds and says whether all of them held.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    let program = build(workspace, args.release)?;
    if let Some(seed) = args.seed {
        let mut command = Command::new(&program);
        command.args(["--seed", &seed.to_string()]);
        if let Some(trace) = &args.trace {
            command.arg("--trace").arg(trace);
        }
        return Ok(command.status().context("cannot start the simulation")?.success());
    }
    let mut seeds = kept(&workspace.root().join(KEPT))?;
    let old = seeds.len();
    seeds.extend(args.from..args.from.saturating_add(args.seeds));
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let begin = Instant::now();
    let seen = Mutex::new(BTreeSet::new());
    let (next, failed, done) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|s| {
        for _ in 0..jobs.max(1) {
            s.spawn(|| {
                loop {
                    let over = args.within.is_some_and(|w| begin.elapsed() > Duration::from_secs(w));
                    let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !over) else {
                        return;
                    };
                    let (lines, ok) = one(&program, *seed);
                    let (rare, last): (Vec<_>, Vec<_>) =
                        lines.into_iter().partition(|l| l.starts_with(SOMETIMES));
                    if let Ok(mut seen) = seen.lock() {
                        seen.extend(
                            rare.iter().filter_map(|l| l.strip_prefix(SOMETIMES).map(ToOwned::to_owned)),
                        );
                    }
                    println!("{}", last.last().map_or("no word", String::as_str));
                    done.fetch_add(1, Ordering::Relaxed);
                    failed.fetch_add(u64::from(!ok), Ordering::Relaxed);
                }
            });
        }
    });
    let (done, failed) = (done.into_inner(), failed.into_inner());
    println!(
        "{done} of {} seeds ({old} of them kept) in {} s, {failed} failed",
        seeds.len(),
        begin.elapsed().as_secs()
    );
    ensure!(done > 0, "no seed was run");
    let seen = seen.into_inner().unwrap_or_default();
    let never: Vec<_> = all_rare(workspace)?.into_iter().filter(|name| !seen.contains(name)).collect();
    println!("rare situations: {} came, {} did not: {}", seen.len(), never.len(), never.join(", "));
    Ok(failed == 0 && (never.is_empty() || done < LONG))
}

fn build(workspace: &Workspace, release: bool) -> anyhow::Result<PathBuf> {
    let mut args = vec!["build", "--quiet", "--package", "tidemill-sim-cluster", "--bin", "sim-cluster"];
    if release {
        args.push("--release");
    }
    let built = workspace.cargo(&args).status().context("cannot start cargo")?;
    ensure!(built.success(), "the simulation does not build");
    Ok(workspace.target()?.join(if release { "release" } else { "debug" }).join("sim-cluster"))
}

/// What a run said, and whether it held.
fn one(program: &Path, seed: u64) -> (Vec<String>, bool) {
    let mut command = Command::new(program);
    command.args(["--sometimes", "--seed", &seed.to_string()]).stdin(Stdio::null());
    match command.output() {
        Ok(out) => {
            let text = String::from_utf8_lossy(&out.stdout);
            let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
            if lines.is_empty() {
                let why = String::from_utf8_lossy(&out.stderr);
                let why: Vec<&str> = why.lines().filter(|l| !l.is_empty()).take(2).collect();
                let why = why.join(" ");
                lines.push(format!(
                    "seed {seed}: FAILED: {}: {why}; again with: cargo xtask sim --seed {seed}",
                    out.status
                ));
            }
            (lines, out.status.success())
        }
        Err(e) => (vec![format!("seed {seed}: FAILED: cannot be started: {e}")], false),
    }
}

/// The names in the simulation's table of rare situations.
fn all_rare(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let file = workspace.root().join("sim/cluster/src/sometimes.rs");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let names = text.lines().filter_map(|l| l.trim().strip_prefix("(\"")?.split('"').next());
    Ok(names.map(ToOwned::to_owned).collect())
}

fn kept(file: &Path) -> anyhow::Result<Vec<u64>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    text.lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(|l| {
            let word = l.split_whitespace().next().unwrap_or_default();
            word.parse().with_context(|| format!("{}: {word:?} is no seed", file.display()))
        })
        .collect()
}
