//! Results: one JSON file with everything, one table with ratios, charts.

mod chart;
mod table;

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde::{Deserialize, Serialize};

use crate::{
    args::Args,
    limits::Limit,
    outcome::Outcome,
    work::{Kind, Work},
};

pub(crate) use table::table;

/// Everything that was measured.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Results {
    pub(crate) machine: String,
    pub(crate) date: String,
    /// One minute's load average at the beginning.
    pub(crate) load: String,
    pub(crate) command: String,
    pub(crate) work: Vec<String>,
    pub(crate) systems: Vec<SystemResults>,
    /// Systems that could not be had, and why.
    pub(crate) missing: Vec<(String, String)>,
    pub(crate) limits: Vec<Limit>,
}

/// Of one system.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SystemResults {
    pub(crate) name: String,
    pub(crate) synced: bool,
    pub(crate) runs: BTreeMap<String, Vec<Outcome>>,
    pub(crate) start_seconds: Vec<f64>,
    pub(crate) idle_rss_bytes: Vec<f64>,
    pub(crate) failures: Vec<String>,
}

impl SystemResults {
    pub(crate) fn new(name: String, synced: bool) -> Self {
        Self {
            name,
            synced,
            runs: BTreeMap::new(),
            start_seconds: Vec::new(),
            idle_rss_bytes: Vec::new(),
            failures: Vec::new(),
        }
    }
}

impl Results {
    pub(crate) fn new(args: &Args, work: &[Work]) -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let model = cpu.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or(" unknown processor");
        let kernel = read("/proc/sys/kernel/osrelease");
        let memory = read("/proc/meminfo");
        let kib = memory.lines().next().and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let date = Command::new("date").args(["-u", "+%F %H:%M UTC"]).output();
        let peers: Vec<String> = args.peers.iter().map(|p| format!("{p:?}").to_lowercase()).collect();
        Self {
            machine: format!(
                "{cores} cores,{}, {} GiB, Linux {}",
                model.trim_start_matches([' ', '\t', ':']).to_owned().split_off(0).trim_start().to_owned(),
                kib.unwrap_or(0) >> 20,
                kernel.trim()
            ),
            date: date.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default(),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
            command: format!(
                "cargo xtask bench{}{}{}",
                if peers.is_empty() { String::new() } else { format!(" --peers {}", peers.join(",")) },
                if args.quick { " --quick" } else { "" },
                args.only.iter().map(|o| format!(" --only '{o}'")).collect::<String>()
            ),
            work: work.iter().map(Work::name).collect(),
            systems: Vec::new(),
            missing: Vec::new(),
            limits: Vec::new(),
        }
    }
}

/// Writes results.json, table.md and the charts.
pub(crate) fn write(out: &Path, results: &Results) -> anyhow::Result<()> {
    fs::write(out.join("results.json"), serde_json::to_string_pretty(results)?)?;
    fs::write(out.join("table.md"), table(results))?;
    for (name, svg) in chart::all(results) {
        fs::write(out.join(name), svg)?;
    }
    Ok(())
}

/// One line for the terminal.
pub(crate) fn short(work: &Work, o: &Outcome) -> String {
    let cost = format!("server CPU {:.2} s per million", o.cpu_per_million());
    match (work.kind, o.printed.latency_us) {
        (Kind::Latency(_) | Kind::EndToEnd(_), Some(l)) => {
            format!("p50 {:.2} ms, p99 {:.2} ms; {cost}", l.p50 / 1e3, l.p99 / 1e3)
        }
        _ => format!("{:.0} records/s; {cost}", o.rate()),
    }
}
