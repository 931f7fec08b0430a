//! A member as a child process: own pid file, own log, restarted when it ends by itself.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use tidemill_runtime::Supervisor;
use tidemill_types::ErrorCode;
use tokio::process::{Child, ChildStdin, Command};

use super::layout::Layout;
use crate::error::CliError;

/// What to do when a child ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Restart {
    /// Start it again, at most twice a second.
    Always,
    /// Leave it.
    Never,
}

/// How to start one member.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
}

const LOOK_AGAIN: Duration = Duration::from_millis(20);
const BACKOFF: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_secs(30);

/// Starts the member and keeps it running until `sup` stops; then ends it with SIGTERM and waits.
pub(crate) fn run(sup: &Supervisor, root: &Path, spec: Spec, restart: Restart) -> Result<(), CliError> {
    let files = Files::new(root, &spec.name)?;
    let first = files.start(&spec)?;
    let sup2 = sup.clone();
    sup.spawn("child", async move {
        let first = match first {
            Some(child) => Some(child),
            None => when_free(&sup2, &files, &spec).await,
        };
        if let Some(first) = first {
            keep(sup2, files, spec, restart, first).await;
        }
    });
    Ok(())
}

/// Starts it when the process of an earlier run, which still holds the log, has ended: it drains when its parent is gone.
async fn when_free(sup: &Supervisor, files: &Files, spec: &Spec) -> Option<Child> {
    let key = format!("{}/start", spec.name);
    sup.health().waits_for(&key, "a process of an earlier run of this member has not ended yet");
    let started = loop {
        tokio::select! {
            () = sup.token().cancelled() => break None,
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
        match files.start(spec) {
            Ok(None) => {}
            Ok(started) => break started,
            Err(e) => {
                sup.fatal(&e.to_string());
                break None;
            }
        }
    };
    sup.health().has(&key);
    started
}

async fn keep(sup: Supervisor, files: Files, spec: Spec, restart: Restart, first: Child) {
    let mut child = first;
    // Held apart from the child, because waiting for it would close it: its end tells the member to drain.
    let mut stdin = child.stdin.take();
    loop {
        tokio::select! {
            status = child.wait() => {
                match status {
                    Ok(s) => tracing::warn!(member = spec.name, status = %s, log = %files.log.display(), "member ended"),
                    Err(e) => tracing::error!(member = spec.name, error = %e, "member cannot be waited for"),
                }
                files.forget_pid();
                if restart == Restart::Never {
                    return;
                }
                tokio::select! {
                    () = sup.token().cancelled() => return,
                    () = tokio::time::sleep(BACKOFF) => {}
                }
                let again = match files.start(&spec) {
                    Ok(None) => when_free(&sup, &files, &spec).await.map(Ok),
                    other => other.transpose(),
                };
                match again {
                    None => return,
                    Some(Ok(c)) => {
                        child = c;
                        stdin = child.stdin.take();
                    }
                    Some(Err(e)) => {
                        sup.fatal(&e.to_string());
                        return;
                    }
                }
            }
            () = sup.token().cancelled() => {
                end(&mut child, stdin, &spec.name).await;
                files.forget_pid();
                return;
            }
        }
    }
}

/// The child drains when its standard input closes; after the grace it is killed.
async fn end(child: &mut Child, stdin: Option<ChildStdin>, name: &str) {
    drop(stdin);
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        tracing::error!(member = name, "did not end in time, killing it");
        if let Err(e) = child.kill().await {
            tracing::error!(member = name, error = %e, "cannot be killed");
        }
    }
}

struct Files {
    log: PathBuf,
    pid: PathBuf,
}

impl Files {
    fn new(root: &Path, name: &str) -> Result<Self, CliError> {
        for dir in ["logs", "pids"] {
            fs::create_dir_all(root.join(dir))
                .map_err(|e| CliError::usage(format!("{}", root.join(dir).display()), e.to_string()))?;
        }
        Ok(Self { log: Layout::log_file(root, name), pid: root.join("pids").join(format!("{name}.pid")) })
    }

    /// Starts it, unless a process of an earlier run holds the log.
    fn start(&self, spec: &Spec) -> Result<Option<Child>, CliError> {
        let fail = |e: std::io::Error| {
            CliError::new(format!("start of {}", spec.name), e.to_string(), ErrorCode::Internal)
        };
        let log = File::options().create(true).append(true).open(&self.log).map_err(fail)?;
        // The lock belongs to the opened file, so the child holds it by its standard output for as long as it lives, however
        // its parent ends: whoever gets the lock has proved that the child is gone.
        match flock(&log, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(e) => return Err(fail(e.into())),
        }
        let exe = std::env::current_exe().map_err(fail)?;
        let mut command = Command::new(exe);
        // The variables were meant for this process; a member would take them as configuration keys of its own.
        for (name, _) in std::env::vars_os().filter(|(n, _)| is_ours(n)) {
            command.env_remove(name);
        }
        let child = command
            .args(&spec.args)
            // The child reads its standard input: its end tells that this process is gone, however it ended.
            .arg("--exit-with-parent")
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(fail)?)
            .stderr(log)
            // A Ctrl-C of the terminal reaches only the parent, which ends the members in order.
            .process_group(0)
            .spawn()
            .map_err(fail)?;
        if let Some(id) = child.id() {
            fs::write(&self.pid, format!("{id}\n")).map_err(fail)?;
        }
        Ok(Some(child))
    }

    fn forget_pid(&self) {
        if let Err(e) = fs::remove_file(&self.pid) {
            tracing::debug!(error = %e, "pid file was gone already");
        }
    }
}

fn is_ours(variable: &std::ffi::OsStr) -> bool {
    variable.to_str().is_some_and(|v| v.starts_with("TIDEMILL_") && v != crate::logs::LOG_ENV)
}
