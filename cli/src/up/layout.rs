//! The data directory of `tidemill up`.
//!
//! | path | content |
//! | --- | --- |
//! | `LOCK` | held while a cluster runs on the directory |
//! | `up.json` | number of members and their ports, so that a restart finds the same ones |
//! | `meta-N/`, `bookie-N/` | the data of each member |
//! | `logs/NAME.log`, `pids/NAME.pid` | with `--processes`; a member holds a lock on its log as long as it lives |

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use tidemill_types::ErrorCode;

use crate::error::{CliError, Exit};

/// What `up.json` holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// Format version, 1.
    pub(crate) version: u32,
    /// Loopback port of each member by name.
    pub(crate) ports: BTreeMap<String, u16>,
    /// The cluster was initialised: its quorum must not be empty any more.
    pub(crate) initialised: bool,
}

/// The opened, locked directory.
#[derive(Debug)]
pub(crate) struct Layout {
    root: PathBuf,
    pub(crate) state: State,
    _lock: File,
}

impl Layout {
    /// Creates or opens `root` and takes its lock.
    pub(crate) fn open(root: &Path) -> Result<Self, CliError> {
        let fail = |e: std::io::Error| {
            let what = format!("data directory {}", root.display());
            CliError::new(what, e.to_string(), ErrorCode::BadDirectory)
                .exit(Exit::Usage)
                .help("choose a directory that this user may write with --data-dir")
        };
        fs::create_dir_all(root).map_err(fail)?;
        let lock =
            File::options().create(true).write(true).truncate(false).open(root.join("LOCK")).map_err(fail)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            CliError::new(
                format!("data directory {}", root.display()),
                "another process runs a cluster on it",
                ErrorCode::Conflict,
            )
            .help("end that process, or choose another directory with --data-dir")
        })?;
        let state = match fs::read_to_string(root.join("up.json")) {
            Ok(text) => serde_json::from_str::<State>(&text)
                .map_err(|e| e.to_string())
                .and_then(|s| {
                    if s.version == 1 { Ok(s) } else { Err(format!("version {}, 1 expected", s.version)) }
                })
                .map_err(|e| CliError::usage(format!("{}", root.join("up.json").display()), e))?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => State { version: 1, ..State::default() },
            Err(e) => return Err(fail(e)),
        };
        Ok(Self { root: root.to_owned(), state, _lock: lock })
    }

    /// The directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The data directory of a member.
    pub(crate) fn member_dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The log of a member that is a process of its own.
    pub(crate) fn log_file(root: &Path, name: &str) -> PathBuf {
        root.join("logs").join(format!("{name}.log"))
    }

    /// Whether no process of an earlier run under this name is left. Members inside of a process ended with the one that held
    /// `LOCK`; each of the others has held the lock of its log through its standard output since before it ran.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        match File::options().append(true).open(Self::log_file(&self.root, name)) {
            Ok(log) => flock(&log, FlockOperation::NonBlockingLockExclusive).is_ok(),
            Err(e) => e.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// The member's port: the one of the last run while nobody else took it, else a free one.
    pub(crate) fn port(&mut self, name: &str) -> Result<u16, CliError> {
        if let Some(&port) = self.state.ports.get(name)
            && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        {
            return Ok(port);
        }
        let port = free_port()?;
        self.state.ports.insert(name.to_owned(), port);
        Ok(port)
    }

    /// Stores `up.json`: temporary file, sync, rename, sync of the directory.
    pub(crate) fn save(&self) -> Result<(), CliError> {
        let write = || -> std::io::Result<()> {
            let temp = self.root.join("up.json.tmp");
            let mut f = File::create(&temp)?;
            f.write_all(&serde_json::to_vec_pretty(&self.state)?)?;
            f.sync_all()?;
            fs::rename(&temp, self.root.join("up.json"))?;
            File::open(&self.root)?.sync_all()
        };
        write().map_err(|e| {
            CliError::new(
                format!("{}", self.root.join("up.json").display()),
                e.to_string(),
                ErrorCode::Internal,
            )
            .exit(Exit::Failed)
        })
    }
}

/// Where the ports of outgoing connections begin on Linux when nobody changed it.
const EPHEMERAL_FROM: u16 = 32_768;
/// Lowest port that is given to a member.
const LOWEST_PORT: u16 = 20_000;
const PORT_TRIES: usize = 64;

/// A port that nobody listens on, below those that outgoing connections get: between this look and the member's own `bind`, and while a
/// member is down, no connection can take it.
fn free_port() -> Result<u16, CliError> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let from = range.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(EPHEMERAL_FROM);
    let width = from.saturating_sub(LOWEST_PORT);
    for _ in 0..if width == 0 { 0 } else { PORT_TRIES } {
        let random = uuid::Uuid::new_v4().as_u64_pair().1 % u64::from(width);
        let port = LOWEST_PORT + u16::try_from(random).unwrap_or(0);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    // A machine with another range, or a very busy one: what the system gives.
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .and_then(|l| l.local_addr())
        .map(|a| a.port())
        .map_err(|e| CliError::new("loopback port", e.to_string(), ErrorCode::Internal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_a_directory_and_the_ports_stay() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Layout::open(dir.path()).unwrap();
        let port = first.port("bookie-0").unwrap();
        first.save().unwrap();
        let e = Layout::open(dir.path()).unwrap_err();
        assert_eq!(e.exit, Exit::Conflict);
        drop(first);
        assert_eq!(Layout::open(dir.path()).unwrap().port("bookie-0").unwrap(), port);
    }

    #[test]
    fn a_state_of_another_version_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("up.json"), "{\"version\":2,\"ports\":{},\"initialised\":false}").unwrap();
        assert_eq!(Layout::open(dir.path()).unwrap_err().exit, Exit::Usage);
    }
}
