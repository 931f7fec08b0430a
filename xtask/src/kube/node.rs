//! A node: a container runtime and a kubelet, with an address and a zone of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use rustix::process::Signal;

use super::network::{FIRST_POD, GATEWAY, PODS, add_node, inside, node_address};
use super::process::{output, signal, start, stop, wait};
use super::state::State;
use super::tools::Tools;
use super::up::render;

/// The image that holds a pod's namespaces.
pub(super) const SANDBOX: &str = "docker.io/library/tidemill-e2e-pause:local";
const LIMIT: Duration = Duration::from_secs(60);

/// A node of a cluster.
pub(super) struct Node<'a> {
    state: &'a State,
    number: u8,
}

impl<'a> Node<'a> {
    /// A node that exists.
    pub(super) fn existing(state: &'a State, number: u8) -> anyhow::Result<Self> {
        state.must_be_up()?;
        let nodes = state.nodes()?;
        ensure!(nodes.contains(&number), "there is no node {number}: the nodes are {nodes:?}");
        Ok(Self { state, number })
    }

    /// Writes a new node's configuration.
    pub(super) fn create(
        workspace: &Path,
        tools: &Tools,
        state: &'a State,
        number: u8,
    ) -> anyhow::Result<Self> {
        let node = Self { state, number };
        let dir = node.dir();
        for folder in ["cni", "logs", "static", "kubelet"] {
            fs::create_dir_all(dir.join(folder))?;
        }
        let (shown, address) = (dir.display().to_string(), node_address(number));
        let (tools, state) = (tools.dir().display().to_string(), state.dir().display().to_string());
        let values = [
            ("node", shown.as_str()),
            ("tools", &tools),
            ("state", &state),
            ("sandbox", SANDBOX),
            ("pods", PODS),
            ("first_pod", FIRST_POD),
            ("gateway", GATEWAY),
            ("address", &address),
        ];
        for (template, to) in [
            ("containerd.toml", "containerd.toml"),
            ("kubelet.yaml", "kubelet.yaml"),
            ("pods.conflist", "cni/10-pods.conflist"),
        ] {
            let text = fs::read_to_string(workspace.join("e2e/kube/config").join(template))?;
            fs::write(dir.join(to), render(&text, &values)?)?;
        }
        Ok(node)
    }

    /// Starts the container runtime.
    pub(super) fn start_runtime(&self, tools: &Tools) -> anyhow::Result<()> {
        add_node(self.number)?;
        let mut containerd = inside(&tools.program("containerd"));
        containerd.arg("--config").arg(self.dir().join("containerd.toml"));
        // The runtime looks for its shim along the path.
        containerd.env("PATH", path_with(tools));
        start(self.state, &self.runtime(), containerd)
    }

    /// Waits for the container runtime, and starts the kubelet.
    pub(super) fn start_kubelet(&self, tools: &Tools) -> anyhow::Result<()> {
        wait("the container runtime", LIMIT, || output(self.ctr(tools).arg("version")).map(drop))?;
        let dir = self.dir();
        let mut kubelet = inside(&tools.program("kubelet"));
        kubelet.arg("--config").arg(dir.join("kubelet.yaml"));
        kubelet.arg("--kubeconfig").arg(self.state.kubeconfig());
        kubelet.arg("--root-dir").arg(dir.join("kubelet"));
        kubelet.arg("--cert-dir").arg(dir.join("certificates"));
        kubelet.args(["--hostname-override", &format!("node-{}", self.number)]);
        kubelet.args(["--node-ip", &node_address(self.number)]);
        let zone =
            format!("topology.kubernetes.io/zone=zone-{},topology.kubernetes.io/region=local", self.number);
        kubelet.args(["--node-labels", &zone]);
        kubelet.env("PATH", path_with(tools));
        start(self.state, &self.kubelet(), kubelet)
    }

    /// Brings an image onto the node. A killed one has no place for it.
    pub(super) fn import(&self, tools: &Tools, archive: &Path) -> anyhow::Result<()> {
        wait("the container runtime", LIMIT, || output(self.ctr(tools).arg("version")).map(drop))?;
        output(self.ctr(tools).args(["images", "import", "--local"]).arg(archive)).map(drop)
    }

    /// Gives an image that the node has another name as well.
    pub(super) fn tag(&self, tools: &Tools, from: &str, to: &str) -> anyhow::Result<()> {
        output(self.ctr(tools).args(["images", "tag", "--force", from, to])).map(drop)
    }

    /// Ends the node as a broken machine does: nothing is told to anybody.
    pub(super) fn kill(&self, tools: &Tools) -> anyhow::Result<()> {
        signal(self.state, &self.kubelet(), Signal::KILL)?;
        self.kill_containers(tools)?;
        signal(self.state, &self.runtime(), Signal::KILL)?;
        for name in [self.kubelet(), self.runtime()] {
            stop(self.state, &name, LIMIT)?;
        }
        Ok(())
    }

    /// Starts a killed node again.
    pub(super) fn start_again(&self, tools: &Tools) -> anyhow::Result<()> {
        self.start_runtime(tools)?;
        self.start_kubelet(tools)
    }

    /// Kills every container of the node.
    pub(super) fn kill_containers(&self, tools: &Tools) -> anyhow::Result<()> {
        let Ok(tasks) = output(self.ctr(tools).args(["tasks", "list", "-q"])) else {
            // The runtime is gone: its shims are found by their command line.
            return super::process::kill_strays(&self.dir().display().to_string());
        };
        for task in tasks.lines() {
            // It may end by itself in between.
            drop(output(self.ctr(tools).args(["tasks", "kill", "--signal", "SIGKILL", task])));
        }
        super::process::kill_strays(&self.dir().display().to_string())
    }

    fn dir(&self) -> PathBuf {
        self.state.dir().join(format!("node-{}", self.number))
    }

    fn runtime(&self) -> String {
        format!("containerd-{}", self.number)
    }

    fn kubelet(&self) -> String {
        format!("kubelet-{}", self.number)
    }

    fn ctr(&self, tools: &Tools) -> Command {
        let mut command = Command::new(tools.program("ctr"));
        command.arg("--address").arg(self.dir().join("containerd.sock")).args(["--namespace", "k8s.io"]);
        command
    }
}

fn path_with(tools: &Tools) -> String {
    let rest = std::env::var("PATH").unwrap_or_default();
    format!("{}:{rest}", tools.dir().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path());
        assert!(Node::existing(&state, 0).err().unwrap().to_string().contains("no cluster"));
        fs::create_dir_all(state.processes()).unwrap();
        fs::create_dir_all(dir.path().join("node-0")).unwrap();
        assert!(Node::existing(&state, 0).is_ok());
        assert!(Node::existing(&state, 3).err().unwrap().to_string().contains("[0]"));
    }
}
