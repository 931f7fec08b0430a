//! Signals to single members, by the pid in their pid file.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// The pid of a member.
pub(crate) fn pid(root: &Path, name: &str) -> Result<Pid> {
    let path = root.join("pids").join(format!("{name}.pid"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Pid::from_raw(text.trim().parse()?).context("pid 0")
}

/// Sends a signal to a member and answers its pid.
pub(crate) fn signal(root: &Path, name: &str, signal: Signal) -> Result<Pid> {
    let pid = pid(root, name)?;
    kill_process(pid, signal).with_context(|| format!("{signal:?} to {name}"))?;
    Ok(pid)
}

/// Waits until a process is gone (its parent has reaped it).
pub(crate) fn gone(pid: Pid, limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    while test_kill_process(pid).is_ok() {
        if Instant::now() >= end {
            bail!("process {pid:?} is still there after {limit:?}");
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    Ok(())
}
