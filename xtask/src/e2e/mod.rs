//! `cargo xtask e2e`: the tests on Kubernetes, from a clean clone to a report.
//!
//! Builds the cluster's programs, the binaries and the image, starts a cluster, runs the tests against it, prints what was
//! done and seen, and ends the cluster. With `KUBECONFIG` set, the tests run against that cluster instead, which has to
//! have the image that `TIDEMILL_E2E_IMAGE` names.

mod report;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::kube::{self, Tools};
use crate::workspace::Workspace;
use crate::{go_program, image};
use report::Report;

/// Flags of `cargo xtask e2e`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also what takes long: large numbers, many kills, broken nodes
    #[arg(long)]
    full: bool,
    /// Also a pipeline with Flux, whose controllers take some ten minutes to build once
    #[arg(long)]
    gitops: bool,
    /// Nodes of the cluster that is started
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// Test the optimised binaries, as they are shipped
    #[arg(long)]
    release: bool,
    /// Take the binaries as they are
    #[arg(long)]
    prebuilt: bool,
    /// Leave the cluster up at the end
    #[arg(long)]
    keep: bool,
    /// Most time for the tests, in minutes
    #[arg(long, value_name = "MINUTES")]
    limit: Option<u64>,
    /// Only tests whose name contains one of these
    filters: Vec<String>,
}

/// Most time for the core set and for the full one.
const CORE: Duration = Duration::from_secs(45 * 60);
const FULL: Duration = Duration::from_secs(150 * 60);

/// Runs the command and says whether all tests passed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    let mut report = Report::default();
    let passed = match env::var_os("KUBECONFIG") {
        Some(kubeconfig) => {
            let image = env::var("TIDEMILL_E2E_IMAGE")
                .context("KUBECONFIG names a cluster: TIDEMILL_E2E_IMAGE must name an image that it has")?;
            build(workspace, args, &mut report)?;
            let next_image = env::var("TIDEMILL_E2E_NEXT_IMAGE").ok();
            let cluster = Cluster { kubeconfig: kubeconfig.into(), image, next_image, own: false };
            tests(workspace, args, &mut report, &cluster)
        }
        None => on_own_cluster(workspace, args, &mut report),
    };
    print!("{report}");
    passed
}

fn on_own_cluster(workspace: &Workspace, args: &Args, report: &mut Report) -> anyhow::Result<bool> {
    let tools = Tools::new(workspace)?;
    report.step("the cluster's programs", || tools.build(workspace))?;
    build(workspace, args, report)?;
    let image = report.step("the image", || image::build(workspace, !args.release, None, None))?;
    let state = report.step("the cluster's start", || kube::up(workspace, args.nodes))?;
    // The same bytes under another tag: what an upgrade looks like to a Cluster.
    let next = format!("{}-next", image.name);
    let cluster = Cluster {
        kubeconfig: state.kubeconfig(),
        image: image.name.clone(),
        next_image: Some(next.clone()),
        own: true,
    };
    let load = || {
        kube::load(&state, &tools, &[image.archive])?;
        kube::tag(&state, &tools, &image::full_name(&image.name), &image::full_name(&next))
    };
    let passed =
        report.step("the image onto the nodes", load).and_then(|()| tests(workspace, args, report, &cluster));
    if args.keep {
        println!("the cluster goes on: eval \"$(cargo xtask kube env)\"; cargo xtask kube down ends it");
        return passed;
    }
    let ended = report.step("the cluster's end", || kube::down(&state, &tools));
    ended.and(passed)
}

/// Where the tests run.
struct Cluster {
    kubeconfig: PathBuf,
    image: String,
    /// Another image of the same version, for updates and back.
    next_image: Option<String>,
    /// Its nodes may be killed.
    own: bool,
}

/// The same selection as the steps of `cargo xtask test`, so that nothing is built twice.
fn build(workspace: &Workspace, args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let build = || {
        let status = workspace.cargo(&["build", "--workspace", "--all-targets"]).status()?;
        ensure!(status.success(), "the workspace does not build");
        Ok(())
    };
    if !args.prebuilt {
        report.step("the binaries and tests", build)?;
    }
    report.step("the judge of health", || go_program::build(workspace, "kstatus").map(drop))?;
    if args.gitops {
        let tools = Tools::new(workspace)?;
        report.step("the GitOps controllers", || tools.build_gitops(workspace))?;
    }
    Ok(())
}

fn tests(workspace: &Workspace, args: &Args, report: &mut Report, cluster: &Cluster) -> anyhow::Result<bool> {
    let lines = workspace.target()?.join("e2e-report.jsonl");
    if lines.exists() {
        fs::remove_file(&lines)?;
    }
    let limit =
        args.limit.map_or(if args.full { FULL } else { CORE }, |minutes| Duration::from_secs(60 * minutes));
    let passed =
        report.step("the tests", || run_within(&mut command(workspace, args, cluster, &lines)?, limit));
    report.seen(&lines)?;
    passed
}

fn command(workspace: &Workspace, args: &Args, cluster: &Cluster, lines: &Path) -> anyhow::Result<Command> {
    let tools = Tools::new(workspace)?;
    let mut command = workspace.cargo(&["test", "--workspace", "--test", "kubernetes", "--"]);
    // They share one cluster, and measure it.
    command.arg("--test-threads=1").arg("--nocapture").args(&args.filters);
    if args.full || args.gitops {
        command.arg("--include-ignored");
    }
    if args.gitops && !args.full {
        command.arg("gitops::");
    } else if !args.gitops {
        command.args(["--skip", "gitops::"]);
    }
    let path = env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{}:{path}", tools.dir().display()))
        .env("KUBECONFIG", &cluster.kubeconfig)
        .env("TIDEMILL_E2E_IMAGE", &cluster.image)
        .env("TIDEMILL_E2E_REPORT", lines)
        .env("TIDEMILL_E2E_KSTATUS", go_program::place(workspace, "kstatus")?);
    if let Some(next) = &cluster.next_image {
        command.env("TIDEMILL_E2E_NEXT_IMAGE", next);
    }
    if args.gitops {
        command.env("TIDEMILL_E2E_GITOPS", tools.dir());
    }
    if cluster.own {
        command.env("TIDEMILL_E2E_XTASK", kube::this_program()?);
    }
    Ok(command)
}

/// Runs a command to its end, which comes at the latest when the time is up.
fn run_within(command: &mut Command, limit: Duration) -> anyhow::Result<bool> {
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            bail!("the tests did not end in {limit:?}");
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
}
