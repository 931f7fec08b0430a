//! A cluster of processes.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::{command::binary, http, members, mount::Mount};

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bookies.
    pub bookies: u8,
    /// Brokers.
    pub brokers: u8,
    /// Members of the quorum.
    pub metas: u8,
    /// Start members again when they end by themselves.
    pub restart: bool,
    /// `--set` values.
    pub set: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { bookies: 3, brokers: 1, metas: 1, restart: true, set: Vec::new() }
    }
}

/// A running cluster of `tidemill up --processes`; dropping it ends it.
#[derive(Debug)]
pub struct Cluster {
    /// In front of `dir`: taken away before it is removed.
    mounts: Vec<Mount>,
    dir: tempfile::TempDir,
    options: Options,
    listen: SocketAddr,
    http: SocketAddr,
    up: Option<Child>,
}

/// A debug build on a loaded machine is slow; a test that waits longer than this has found a hang.
const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(60);

impl Cluster {
    /// Starts a cluster on an empty directory and waits until it serves.
    ///
    /// # Errors
    /// It does not serve in time; the message holds the end of its logs.
    pub fn start(options: Options) -> Result<Self> {
        Self::with_disks(options, &[])
    }

    /// The same, with a file system of its own for the data of some members: name and MiB.
    ///
    /// # Errors
    /// As [`Cluster::start`]; or this process may not mount.
    pub fn with_disks(options: Options, disks: &[(&str, u64)]) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("tidemill-e2e-").tempdir()?;
        let mut cluster = Self { mounts: Vec::new(), dir, options, listen: free()?, http: free()?, up: None };
        for (member, mib) in disks {
            cluster.mounts.push(Mount::tmpfs(&cluster.data().join(member), *mib)?);
        }
        cluster.up()?;
        Ok(cluster)
    }

    /// Starts `tidemill up` again on the same directory and waits until it serves.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn up(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.root().join("up.log"))?;
        let o = &self.options;
        let mut command = Command::new(binary()?);
        command
            .arg("up")
            .arg("--processes")
            .arg(format!("--data-dir={}", self.data().display()))
            .arg(format!("--listen={}", self.listen))
            .arg(format!("--http={}", self.http))
            .arg(format!("--bookies={}", o.bookies))
            .arg(format!("--brokers={}", o.brokers))
            .arg(format!("--metas={}", o.metas))
            .arg(format!("--restart={}", if o.restart { "always" } else { "never" }))
            .args(o.set.iter().map(|s| format!("--set={s}")))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.up = Some(command.spawn().context("tidemill up")?);
        self.ready(START)
    }

    /// Waits until `/readyz` says so.
    ///
    /// # Errors
    /// It ended, or is not ready in time.
    pub fn ready(&mut self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            if let Ok((200, _)) = http::get(self.http, "/readyz") {
                return Ok(());
            }
            let ended = self.up.as_mut().and_then(|c| c.try_wait().transpose()).transpose()?;
            if let Some(status) = ended {
                bail!("tidemill up ended: {status}\n{}", self.logs());
            }
            if Instant::now() >= end {
                let why = http::get(self.http, "/readyz").map(|(_, b)| b).unwrap_or_default();
                bail!("not ready after {limit:?}: {why}\n{}", self.logs());
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// The temporary directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// The cluster's data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.root().join("data")
    }

    /// URL of the first broker.
    #[must_use]
    pub fn server(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// Address of the first broker.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listen
    }

    /// HTTP address of the whole.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// A member's recorded port: `bookie-0`, `bookie-0-http`.
    ///
    /// # Errors
    /// No such member.
    pub fn port(&self, name: &str) -> Result<u16> {
        let text = fs::read_to_string(self.data().join("up.json"))?;
        let state: serde_json::Value = serde_json::from_str(&text)?;
        let port = state["ports"][name].as_u64().with_context(|| format!("port of {name}"))?;
        Ok(u16::try_from(port)?)
    }

    /// Kills a member at once and waits until it is gone.
    ///
    /// # Errors
    /// No such process.
    pub fn kill(&self, name: &str) -> Result<()> {
        let pid = members::signal(&self.data(), name, Signal::KILL)?;
        members::gone(pid, STOP)
    }

    /// Freezes a member.
    ///
    /// # Errors
    /// No such process.
    pub fn freeze(&self, name: &str) -> Result<()> {
        members::signal(&self.data(), name, Signal::STOP).map(drop)
    }

    /// Wakes a frozen member up.
    ///
    /// # Errors
    /// No such process.
    pub fn thaw(&self, name: &str) -> Result<()> {
        members::signal(&self.data(), name, Signal::CONT).map(drop)
    }

    /// Asks a member to end (SIGTERM).
    ///
    /// # Errors
    /// No such process.
    pub fn terminate(&self, name: &str) -> Result<()> {
        members::signal(&self.data(), name, Signal::TERM).map(drop)
    }

    /// The member's process id.
    ///
    /// # Errors
    /// It is not running.
    pub fn pid(&self, name: &str) -> Result<Pid> {
        members::pid(&self.data(), name)
    }

    /// Waits until a member's process has ended.
    ///
    /// # Errors
    /// Not in time.
    pub fn ended(&self, pid: Pid) -> Result<()> {
        members::gone(pid, STOP)
    }

    /// Waits until a member runs under another pid than `old`.
    ///
    /// # Errors
    /// Not in time.
    pub fn restarted(&self, name: &str, old: Pid) -> Result<()> {
        let end = Instant::now() + START;
        loop {
            match self.pid(name) {
                Ok(new) if new != old => return Ok(()),
                _ if Instant::now() >= end => bail!("{name} was not started again\n{}", self.logs()),
                _ => std::thread::park_timeout(Duration::from_millis(5)),
            }
        }
    }

    /// Kills every process of the cluster at once, the parent first so that it starts nothing again.
    ///
    /// # Errors
    /// A process that cannot be killed.
    pub fn kill_all(&mut self) -> Result<()> {
        if let Some(mut up) = self.up.take() {
            up.kill()?;
            up.wait()?;
        }
        let pids = self.data().join("pids");
        let mut killed = Vec::new();
        for item in fs::read_dir(&pids)? {
            let name = item?.file_name();
            let Some(name) = name.to_str().and_then(|n| n.strip_suffix(".pid")) else { continue };
            let pid = members::pid(&self.data(), name)?;
            // It may have ended with its parent already.
            if kill_process(pid, Signal::KILL).is_ok() {
                killed.push(pid);
            }
        }
        killed.into_iter().try_for_each(|p| members::gone(p, STOP))
    }

    /// Ends the cluster in order.
    ///
    /// # Errors
    /// It does not end in time, or not with success.
    pub fn stop(&mut self) -> Result<()> {
        let Some(mut up) = self.up.take() else { return Ok(()) };
        let pid = Pid::from_child(&up);
        kill_process(pid, Signal::TERM)?;
        let end = Instant::now() + STOP;
        loop {
            if let Some(status) = up.try_wait()? {
                if status.success() {
                    return Ok(());
                }
                bail!("tidemill up ended with {status}\n{}", self.logs());
            }
            if Instant::now() >= end {
                up.kill()?;
                up.wait()?;
                bail!("tidemill up did not end in {STOP:?}\n{}", self.logs());
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// The last lines of every log.
    #[must_use]
    pub fn logs(&self) -> String {
        let mut files = vec![self.root().join("up.log")];
        if let Ok(items) = fs::read_dir(self.data().join("logs")) {
            files.extend(items.filter_map(|i| i.ok().map(|i| i.path())));
        }
        files.sort();
        let mut out = String::new();
        for f in files {
            let text = fs::read_to_string(&f).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(15).collect();
            out.push_str(&format!("--- {}\n", f.display()));
            for l in lines.into_iter().rev() {
                out.push_str(l);
                out.push('\n');
            }
        }
        out
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.up.is_some() {
            drop(self.kill_all());
        }
    }
}

/// A port that nobody listens on, below those that outgoing connections get, so that it is still free when a cluster starts again.
fn free() -> Result<SocketAddr> {
    for _ in 0..64 {
        let port = 10_000 + u16::try_from(uuid::Uuid::new_v4().as_u64_pair().1 % 10_000)?;
        if let Ok(l) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(l.local_addr()?);
        }
    }
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
