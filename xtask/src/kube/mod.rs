//! `cargo xtask kube`: a real Kubernetes cluster on this machine, of plain processes, for the tests in `e2e/`.
//!
//! The programs are built from the Go modules that `e2e/kube/modules` pins; see `e2e/README.md` for what the machine has
//! to have. The cluster lives in a network namespace of its own: its addresses, ports and firewall rules meet nobody
//! else's, and go away with it.

mod control_plane;
mod network;
mod node;
mod process;
mod state;
mod tools;
mod up;
mod volumes;

use std::path::PathBuf;

use anyhow::{Context, ensure};

pub(crate) use process::{output, run as run_command};
pub(crate) use state::State;
pub(crate) use tools::Tools;
pub(crate) use volumes::this_program;

use crate::workspace::Workspace;

/// More nodes than this have no address set aside.
const MOST_NODES: u8 = 9;

/// Flags of `cargo xtask kube`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Build the cluster's programs, where that was not done yet
    Build,
    /// Start a cluster
    Up {
        /// Nodes, each in a zone of its own
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_NODES)))]
        nodes: u8,
    },
    /// Bring images (OCI or docker archives) onto every node
    Load {
        /// The archives
        #[arg(required = true)]
        archives: Vec<PathBuf>,
    },
    /// Print what a shell needs: eval "$(cargo xtask kube env)"
    Env,
    /// Nodes and pods
    Status,
    /// Kill a node with everything that runs on it
    KillNode {
        /// Its number, from 0
        number: u8,
    },
    /// Start a killed node again, with what is left on its disk
    StartNode {
        /// Its number, from 0
        number: u8,
    },
    /// Make new volumes writable for everybody; runs for as long as the cluster does
    #[command(hide = true)]
    OpenVolumes,
    /// End everything that `up` started and remove its folder
    Down,
}

/// Runs the command.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> anyhow::Result<bool> {
    let tools = Tools::new(workspace)?;
    let state = State::default_place();
    match &args.command {
        Command::Build => tools.build(workspace)?,
        Command::Up { nodes } => {
            up(workspace, *nodes)?;
            println!(
                "up: {nodes} node(s); eval \"$(cargo xtask kube env)\" for kubectl, helm, ctr and KUBECONFIG"
            );
        }
        Command::Load { archives } => load(&state, &tools, archives)?,
        Command::Env => {
            println!("export KUBECONFIG={}", state.kubeconfig().display());
            println!("export PATH={}:$PATH", tools.dir().display());
        }
        Command::Status => {
            state.must_be_up()?;
            process::run(tools.kubectl(&state).args([
                "get",
                "nodes,pods",
                "--all-namespaces",
                "-o",
                "wide",
            ]))?;
        }
        Command::KillNode { number } => node::Node::existing(&state, *number)?.kill(&tools)?,
        Command::StartNode { number } => node::Node::existing(&state, *number)?.start_again(&tools)?,
        Command::OpenVolumes => match volumes::open()? {},
        Command::Down => down(&state, &tools)?,
    }
    Ok(true)
}

/// Starts a cluster; what was started is ended again when it does not come up.
pub(crate) fn up(workspace: &Workspace, nodes: u8) -> anyhow::Result<State> {
    let tools = Tools::new(workspace)?;
    tools.build(workspace)?;
    let state = State::default_place();
    ensure!(!state.is_up(), "{} is in use: end it with `cargo xtask kube down`", state.dir().display());
    if let Err(error) = up::up(workspace, &tools, &state, nodes) {
        let logs = state.last_lines();
        let error = error.context(format!("the cluster did not come up\n{logs}"));
        return match down(&state, &tools) {
            Ok(()) => Err(error),
            Err(more) => Err(error.context(format!("and could not be ended: {more:#}"))),
        };
    }
    Ok(state)
}

/// Brings images onto every node.
pub(crate) fn load(state: &State, tools: &Tools, archives: &[PathBuf]) -> anyhow::Result<()> {
    state.must_be_up()?;
    for number in state.nodes()? {
        for archive in archives {
            node::Node::existing(state, number)?
                .import(tools, archive)
                .with_context(|| format!("image {} on node {number}", archive.display()))?;
        }
    }
    Ok(())
}

/// Gives an image another name on every node, as written out by container runtimes.
pub(crate) fn tag(state: &State, tools: &Tools, from: &str, to: &str) -> anyhow::Result<()> {
    state.must_be_up()?;
    for number in state.nodes()? {
        node::Node::existing(state, number)?
            .tag(tools, from, to)
            .with_context(|| format!("image {from} as {to} on node {number}"))?;
    }
    Ok(())
}

/// Ends everything that was started and removes what it left.
pub(crate) fn down(state: &State, tools: &Tools) -> anyhow::Result<()> {
    up::down(state, tools)
}
