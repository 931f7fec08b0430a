//! Starting, awaiting and ending the cluster's processes.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::state::State;

/// How often a condition is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Runs a command to its end; a bad exit code is an error.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a command to its end and answers what it printed; a bad exit code is an error with what it said.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until `ready` answers Ok.
pub(crate) fn wait(
    what: &str,
    limit: Duration,
    mut ready: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let end = Instant::now() + limit;
    loop {
        match ready() {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() >= end => {
                return Err(error.context(format!("{what}: not after {limit:?}")));
            }
            Err(_) => thread::park_timeout(TICK),
        }
    }
}

/// Starts a process that outlives this one, with a log and a pid file under its name.
pub(super) fn start(state: &State, name: &str, mut command: Command) -> anyhow::Result<()> {
    let log = File::create(state.log(name)).with_context(|| format!("log of {name}"))?;
    // A group of its own: the terminal's interrupt ends the command that waits, not the cluster.
    let child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let pid = child.id();
    let born = birth(pid).with_context(|| format!("{name} ended at once"))?;
    fs::write(state.processes().join(name), format!("{pid} {born}")).with_context(|| format!("pid of {name}"))
}

/// Sends a signal to a process, when it still is the one that was started.
pub(super) fn signal(state: &State, name: &str, signal: Signal) -> anyhow::Result<()> {
    let Some(pid) = living(state, name)? else { return Ok(()) };
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{signal:?} to {name}")),
    }
}

/// Ends a process: asks it, insists after `patience`, and forgets it.
pub(super) fn stop(state: &State, name: &str, patience: Duration) -> anyhow::Result<()> {
    signal(state, name, Signal::TERM)?;
    let gone = |limit| {
        wait(name, limit, || match living(state, name)? {
            None => Ok(()),
            Some(pid) => bail!("process {pid:?} still runs"),
        })
    };
    if gone(patience).is_err() {
        signal(state, name, Signal::KILL)?;
        gone(Duration::from_secs(10))?;
    }
    let file = state.processes().join(name);
    if file.exists() {
        fs::remove_file(&file).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// The names of all processes that were started and not stopped.
pub(super) fn names(state: &State) -> anyhow::Result<Vec<String>> {
    let dir = state.processes();
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn living(state: &State, name: &str) -> anyhow::Result<Option<Pid>> {
    let file = state.processes().join(name);
    let Ok(text) = fs::read_to_string(&file) else { return Ok(None) };
    let (pid, born) = text.split_once(' ').with_context(|| format!("{} is damaged", file.display()))?;
    let pid: u32 = pid.parse().with_context(|| format!("{} is damaged", file.display()))?;
    if birth(pid).is_none_or(|now| now != born) {
        return Ok(None);
    }
    Ok(Pid::from_raw(i32::try_from(pid)?))
}

/// The start time of a living process, in ticks of the kernel's clock: with the pid it names a process for good.
fn birth(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces; the state and 19 more fields follow it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" {
        return None;
    }
    fields.nth(18).map(str::to_owned)
}

/// Kills every process whose command line names the folder of this cluster: shims of containers, which no pid file
/// knows.
pub(super) fn kill_strays(folder: &str) -> anyhow::Result<()> {
    let folder = format!("{folder}/");
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&line);
        let shim =
            text.split('\0').next().is_some_and(|program| program.ends_with("containerd-shim-runc-v2"));
        if shim && text.contains(&folder) {
            let pid = Pid::from_raw(pid).context("pid 0")?;
            match kill_process(pid, Signal::KILL) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error).context("a shim"),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ended_and_a_stranger_with_its_pid_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path());
        fs::create_dir_all(state.processes()).unwrap();
        fs::create_dir_all(dir.path().join("logs")).unwrap();
        let mut command = Command::new("cat");
        command.arg("/dev/zero");
        start(&state, "reader", command).unwrap();
        assert_eq!(names(&state).unwrap(), ["reader"]);
        assert!(living(&state, "reader").unwrap().is_some());
        stop(&state, "reader", Duration::from_secs(10)).unwrap();
        assert!(names(&state).unwrap().is_empty());

        // This very process, recorded with another birth: it must survive.
        fs::write(state.processes().join("stranger"), format!("{} 1", std::process::id())).unwrap();
        stop(&state, "stranger", Duration::from_secs(1)).unwrap();
    }

    #[test]
    fn waiting_ends_with_the_last_reason() {
        let error = wait("door", Duration::ZERO, || bail!("locked")).unwrap_err();
        assert_eq!(format!("{error:#}"), "door: not after 0ns: locked");
    }
}
