//! Where a cluster keeps its files, and which of its processes run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The folder of a cluster.
pub(crate) struct State {
    dir: PathBuf,
}

impl State {
    /// The folder that `TIDEMILL_KUBE_STATE` names, or one for temporary files. It is short on purpose: the path of a
    /// socket has at most 107 bytes.
    pub(crate) fn default_place() -> Self {
        let dir = env::var_os("TIDEMILL_KUBE_STATE")
            .map_or_else(|| env::temp_dir().join("tidemill-kube"), PathBuf::from);
        Self { dir }
    }

    /// The folder `dir`.
    #[cfg(test)]
    pub(crate) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether a cluster runs here, or one was not ended cleanly.
    pub(crate) fn is_up(&self) -> bool {
        self.processes().exists()
    }

    /// Refuses when no cluster is here.
    pub(crate) fn must_be_up(&self) -> anyhow::Result<()> {
        if self.is_up() {
            return Ok(());
        }
        bail!("no cluster in {}: `cargo xtask kube up` starts one", self.dir.display())
    }

    /// The administrator's way in.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The folder of one pid file per process.
    pub(super) fn processes(&self) -> PathBuf {
        self.dir.join("processes")
    }

    /// The log of a process.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{name}.log"))
    }

    /// The numbers of all nodes, also of killed ones.
    pub(super) fn nodes(&self) -> anyhow::Result<Vec<u8>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.dir).with_context(|| format!("cannot list {}", self.dir.display()))? {
            let name = entry?.file_name();
            if let Some(number) = name.to_str().and_then(|name| name.strip_prefix("node-")) {
                numbers.push(number.parse().with_context(|| format!("folder node-{number}"))?);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The end of every log: why a cluster did not come up.
    pub(super) fn last_lines(&self) -> String {
        const LINES: usize = 8;
        let mut logs: Vec<PathBuf> = fs::read_dir(self.dir.join("logs"))
            .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
            .unwrap_or_default();
        logs.sort();
        let mut shown = String::new();
        for log in logs {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let from = text.lines().count().saturating_sub(LINES);
            shown.push_str(&format!("--- {}\n", log.display()));
            for line in text.lines().skip(from) {
                shown.push_str(line);
                shown.push('\n');
            }
        }
        shown
    }
}
