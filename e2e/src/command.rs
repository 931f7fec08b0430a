//! Running `tidemill` and other programs to their end, within a time limit.

use std::{
    io::{Read, Write},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Itself, when the exit code is 0.
    ///
    /// # Errors
    /// What it printed.
    pub fn ok(self) -> Result<Self> {
        if self.code == Some(0) {
            return Ok(self);
        }
        bail!("exit code {:?}\nstdout: {}\nstderr: {}", self.code, tail(&self.stdout), tail(&self.stderr))
    }
}

fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(4_000);
    (start..=text.len()).find_map(|i| text.get(i..)).unwrap_or_default()
}

/// The binary under test.
///
/// # Errors
/// It is not there: build it first (`cargo build --workspace`).
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("TIDEMILL_BIN") {
        return Ok(path.into());
    }
    let test = std::env::current_exe().context("path of the test")?;
    // target/debug/deps/test-hash, or target/debug/examples/name.
    let dir = test.parent().and_then(|p| p.parent()).context("folder of the test")?;
    let path = dir.join("tidemill");
    if !path.exists() {
        bail!("{} is not there: run `cargo build --workspace` first, or set TIDEMILL_BIN", path.display());
    }
    Ok(path)
}

/// Runs `tidemill` with `args`, feeding `input`, for at most `limit`.
///
/// # Errors
/// It cannot be started, or did not end in time (then it is killed).
pub fn tidemill(args: &[&str], input: &[u8], limit: Duration) -> Result<Finished> {
    let mut command = Command::new(binary()?);
    command.args(args).env_remove("TIDEMILL_SERVER");
    run(&mut command, input, limit)
}

/// Runs any program to its end.
///
/// # Errors
/// It cannot be started, or did not end in time (then it is killed).
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> Result<Finished> {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("start of {shown}"))?;
    let mut stdin = child.stdin.take().context("stdin")?;
    let input = input.to_vec();
    // The child may end before it has read everything: that is for its exit code to say.
    let feed = thread::spawn(move || drop(stdin.write_all(&input)));
    let out = collect(child.stdout.take().context("stdout")?);
    let err = collect(child.stderr.take().context("stderr")?);
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            let (out, err) = (join(out)?, join(err)?);
            bail!("{shown} did not end in {limit:?}\nstdout: {}\nstderr: {}", tail(&out), tail(&err));
        }
        thread::park_timeout(Duration::from_millis(5));
    };
    drop(feed.join());
    Ok(Finished { code: status.code(), stdout: join(out)?, stderr: join(err)? })
}

type Collected = thread::JoinHandle<std::io::Result<Vec<u8>>>;

fn collect(mut from: impl Read + Send + 'static) -> Collected {
    thread::spawn(move || {
        let mut all = Vec::new();
        from.read_to_end(&mut all)?;
        Ok(all)
    })
}

fn join(t: Collected) -> Result<String> {
    let bytes = t.join().map_err(|_| anyhow::anyhow!("reader panicked"))??;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether tests that can fill any time take their full length: `cargo xtask test --full`.
#[must_use]
pub fn full() -> bool {
    std::env::var_os("TIDEMILL_FULL").is_some_and(|v| !v.is_empty() && v != "0")
}
