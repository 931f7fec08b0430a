//! Runs one seed. One process a seed: what is seeded is the process (random numbers, clocks).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line")]

use std::{fs::File, path::PathBuf, process::ExitCode};

use clap::Parser;
use mad_turmoil::{rand::set_rng, time::SimClocksGuard};
use rand::{SeedableRng, rngs::StdRng};
use tidemill_sim_cluster::{plan::Plan, run::run, trace::Trace};

/// One simulated run of a whole cluster.
#[derive(Parser)]
struct Args {
    /// What decides everything
    #[arg(long)]
    seed: u64,
    /// Nothing goes wrong
    #[arg(long)]
    calm: bool,
    /// Where the trace is written
    #[arg(long)]
    trace: Option<PathBuf>,
    /// The trace on the standard error as well
    #[arg(long)]
    loud: bool,
    /// Says which rare situations came
    #[arg(long)]
    sometimes: bool,
    /// All bookies lose their disks: the run has to fail
    #[arg(long)]
    sabotage: bool,
    /// What of the logs belongs to the trace
    #[arg(long, default_value = "info,turmoil=off,openraft=warn,tidemill_rare=debug")]
    logs: String,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let file = match args.trace.as_ref().map(File::create).transpose() {
        Ok(file) => file,
        Err(e) => {
            eprintln!("error: the trace cannot be written: {e}");
            return ExitCode::from(2);
        }
    };
    set_rng(StdRng::seed_from_u64(args.seed));
    let _clocks = SimClocksGuard::init();
    let trace = Trace::new(file, args.loud);
    trace.take_logs(&args.logs);
    let mut plan = Plan::new(args.seed, !args.calm && !args.sabotage);
    if args.sabotage {
        plan.sabotage();
    }
    trace.line(format_args!("plan: {plan:?}"));
    let outcome = run(&plan, &trace);
    if args.sometimes {
        trace.seen().iter().for_each(|s| println!("sometimes: {s}"));
    }
    let (lines, digest) = trace.digest();
    if let Err(e) = trace.finish() {
        eprintln!("error: the trace was not written: {e}");
        return ExitCode::from(2);
    }
    match outcome {
        Ok(o) => {
            println!(
                "seed {}: ok, {} s, {} records, {} copies, trace {digest:016x} of {lines} lines",
                args.seed,
                o.took.as_secs(),
                o.records,
                o.copies
            );
            ExitCode::SUCCESS
        }
        Err(e) => {
            println!("seed {}: FAILED: {e:#}; again with: cargo xtask sim --seed {}", args.seed, args.seed);
            ExitCode::FAILURE
        }
    }
}
