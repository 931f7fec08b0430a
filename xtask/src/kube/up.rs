//! From nothing to a cluster, and back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::node::{Node, SANDBOX};
use super::process::{kill_strays, names, output, stop};
use super::state::State;
use super::tools::Tools;
use super::{control_plane, network, volumes};
use crate::image;
use crate::workspace::Workspace;

/// How long a process may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts everything, in the order in which it needs each other.
pub(super) fn up(workspace: &Workspace, tools: &Tools, state: &State, nodes: u8) -> anyhow::Result<()> {
    let root = workspace.root();
    for folder in [state.processes(), state.dir().join("logs")] {
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    network::create().context("the network (this takes root, and Debian's iproute2)")?;
    volumes::start_opener(state)?;
    let mut made = Vec::new();
    for number in 0..nodes {
        let node = Node::create(root, tools, state, number)?;
        node.start_runtime(tools)?;
        made.push(node);
    }
    control_plane::start_api_server(root, tools, state)?;
    control_plane::start_controllers(root, tools, state)?;
    let pause = state.dir().join("pause.tar");
    image::single(&tools.program("pause"), SANDBOX, &pause)?;
    for node in &made {
        node.import(tools, &pause)?;
        node.start_kubelet(tools)?;
    }
    control_plane::ready(tools, state, nodes)
}

/// Ends everything. Works on what is left of a cluster, too.
pub(super) fn down(state: &State, tools: &Tools) -> anyhow::Result<()> {
    if !state.dir().exists() {
        return network::remove();
    }
    let made = made_volumes(state, tools);
    // Kubelets first, so that nothing starts again what is ended; the store last.
    let all = names(state)?;
    let kubelets = || all.iter().filter(|name| name.starts_with("kubelet-"));
    for name in kubelets() {
        stop(state, name, PATIENCE)?;
    }
    for number in state.nodes()? {
        Node::existing(state, number)?.kill_containers(tools)?;
    }
    for name in all.iter().filter(|name| *name != "etcd") {
        stop(state, name, PATIENCE)?;
    }
    stop(state, "etcd", PATIENCE)?;
    let folder = state.dir().display().to_string();
    kill_strays(&folder)?;
    unmount(&folder)?;
    network::remove()?;
    for volume in made {
        fs::remove_dir_all(&volume).with_context(|| volume.display().to_string())?;
    }
    remove_dead_links(state)?;
    fs::remove_dir_all(state.dir()).with_context(|| folder)
}

/// The folders of the cluster's volumes, as far as it can still tell.
fn made_volumes(state: &State, tools: &Tools) -> Vec<PathBuf> {
    let path = "jsonpath={range .items[*]}{.spec.hostPath.path}{\"\\n\"}{end}";
    let told = output(tools.kubectl(state).args(["get", "pv", "--request-timeout=5s", "-o", path]));
    let told = told.unwrap_or_default();
    let own = told.lines().map(Path::new).filter(|path| path.parent() == Some(Path::new(volumes::FOLDER)));
    own.filter(|path| path.is_dir()).map(Path::to_path_buf).collect()
}

/// Takes away what the container runtimes and kubelets mounted, the innermost first.
fn unmount(folder: &str) -> anyhow::Result<()> {
    let inside = format!("{folder}/");
    let mounts = fs::read_to_string("/proc/mounts")?;
    let mut places: Vec<&str> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|place| place.starts_with(&inside))
        .collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    for place in places {
        output(Command::new("umount").args(["-l", place]))?;
    }
    Ok(())
}

/// Kubelets keep links to logs in a folder that no setting moves.
fn remove_dead_links(state: &State) -> anyhow::Result<()> {
    let folder = Path::new("/var/log/containers");
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if fs::read_link(&path).is_ok_and(|target| target.starts_with(state.dir())) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Fills `${name}` in; what is left over is an error.
pub(super) fn render(template: &str, values: &[(&str, &str)]) -> anyhow::Result<String> {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    let rest = text.lines().find(|line| line.contains("${") && !line.starts_with('#'));
    ensure!(rest.is_none(), "nothing was given for {}", rest.unwrap_or_default().trim());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_whole() {
        assert_eq!(render("a ${b} ${b}", &[("b", "c")]).unwrap(), "a c c");
        assert!(render("a ${b}", &[]).unwrap_err().to_string().contains("${b}"));
    }
}
