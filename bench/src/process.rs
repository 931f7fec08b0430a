//! Servers and clients as processes: what they cost, and their end, by the ids of what was started here.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::outcome::as_f64;

/// How long a server may take to end by itself.
const GRACE: Duration = Duration::from_secs(30);
/// Unit of the times in /proc, fixed in the system's interface.
const USER_HZ: f64 = 100.0;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// A server that was started; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `command` with its output in `log`.
    pub(crate) fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { child, log })
    }

    /// Fails when the server has ended, with the end of its log.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended: {status}\n{}", self.log.display(), tail(&self.log)),
        }
    }

    fn stop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        signal(self.child.id(), Signal::TERM);
        let end = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > end {
                // Its children first, so that none is left behind.
                tree(self.child.id()).into_iter().for_each(|pid| signal(pid, Signal::KILL));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _gone = kill_process(pid, signal);
    }
}

/// The end of a file, for messages.
pub(crate) fn tail(file: &Path) -> String {
    let text = fs::read(file).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// What processes have used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu_seconds: f64,
    pub(crate) rss_bytes: f64,
    pub(crate) written_bytes: f64,
}

/// Of these servers and everything that they have started.
pub(crate) fn cost(servers: &[Server]) -> Cost {
    let mut sum = Cost::default();
    for pid in servers.iter().flat_map(|s| tree(s.child.id())) {
        sum.cpu_seconds += cpu(pid);
        sum.rss_bytes += field(&format!("/proc/{pid}/status"), "VmRSS:") * 1024.0;
        sum.written_bytes += field(&format!("/proc/{pid}/io"), "write_bytes:");
    }
    sum
}

/// User and system time so far, seconds; that of children that were waited for included.
fn cpu(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(") ") else { return 0.0 };
    let ticks: u64 = rest.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    as_f64(ticks) / USER_HZ
}

fn field(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}

/// A process and its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, r)| r.split(' ').nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|p| (p, pid)));
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(p, _)| *p == pid).map(|(_, c)| *c));
        at += 1;
    }
    found
}

/// What a client printed, and what it used.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_server_rss: f64,
    pub(crate) stopped: bool,
}

/// Runs a client to its end while `servers` are watched; `stop` is asked now and then whether it has to end early.
pub(crate) fn run(
    mut command: Command,
    servers: &mut [Server],
    limit: Duration,
    mut stop: impl FnMut() -> bool,
) -> anyhow::Result<Ran> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let out = child.stdout.take().map(|o| std::thread::spawn(move || std::io::read_to_string(o)));
    let err = child.stderr.take().map(|o| std::thread::spawn(move || std::io::read_to_string(o)));
    let begin = Instant::now();
    let (mut cpu_seconds, mut peak, mut stopped) = (0.0_f64, 0.0_f64, false);
    let mut looked = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        cpu_seconds = cpu_seconds.max(cpu(child.id()));
        if looked.elapsed() > LOOK * 10 {
            looked = Instant::now();
            peak = peak.max(cost(servers).rss_bytes);
            if !stopped && (stop() || begin.elapsed() > limit) {
                stopped = true;
                signal(child.id(), Signal::INT);
            }
            if begin.elapsed() > limit + GRACE {
                child.kill()?;
            }
        }
        std::thread::sleep(LOOK);
    };
    let text = |t: Option<std::thread::JoinHandle<std::io::Result<String>>>| {
        t.and_then(|t| t.join().ok()).and_then(Result::ok).unwrap_or_default()
    };
    let (stdout, stderr) = (text(out), text(err));
    for s in servers {
        s.check()?;
    }
    if !status.success() && !stopped {
        bail!("the load client ended: {status}\n{stdout}\n{stderr}");
    }
    Ok(Ran { stdout, cpu_seconds, peak_server_rss: peak, stopped })
}

/// Runs a helper to its end.
pub(crate) fn done(mut command: Command) -> anyhow::Result<String> {
    let out = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !out.status.success() {
        let (o, e) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        bail!("{} ended: {}\n{o}\n{e}", command.get_program().display(), out.status);
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Ports that are free now.
pub(crate) fn ports(n: usize) -> anyhow::Result<Vec<u16>> {
    // All are held until the last one is known, so that none comes twice.
    let held: std::io::Result<Vec<TcpListener>> =
        (0..n).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect();
    Ok(held?.iter().map(|l| l.local_addr().map(|a| a.port())).collect::<std::io::Result<_>>()?)
}

/// Waits until something listens.
pub(crate) fn wait_for(port: u16, servers: &mut [Server], limit: Duration) -> anyhow::Result<()> {
    let (end, at) = (Instant::now() + limit, SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    while TcpStream::connect_timeout(&at, LOOK).is_err() {
        for s in &mut *servers {
            s.check()?;
        }
        if Instant::now() > end {
            bail!("nothing listens at {at} after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
