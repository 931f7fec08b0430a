//! What can be typed after `cargo xtask`.

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;
use crate::{bench, chaos, e2e, image, kube, layers, licences, messages, model, sim, sizes, test, verify};

/// The command line.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "The commands of the project", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test there is
    Test(test::Args),
    /// Everything that has to be green: format, lints, layers, licences, docs, file sizes, tests
    Verify(verify::Args),
    /// The tests on Kubernetes, from a clean clone to a report
    E2e(e2e::Args),
    /// Build the container image
    Image(image::Args),
    /// A Kubernetes cluster on this machine
    Kube(kube::Args),
    /// Check that dependencies go downwards through the layers of the architecture
    Layers,
    /// Check licences, banned packages and sources against deny.toml
    Licences,
    /// Check the sizes of source files
    Sizes,
    /// Write docs/protocol/messages.md out of the proto files
    Messages,
    /// Explore the models of the protocol: scopes, states, time
    Model(model::Args),
    /// Run simulated clusters: network, disks, clocks and processes fail as each seed says
    Sim(sim::Args),
    /// Kill, freeze, wipe real processes under load, for as long as you like
    Chaos(chaos::Args),
    /// Compare with other systems on this machine (docs/performance.md)
    #[command(disable_help_flag = true)]
    Bench(bench::Args),
}

impl Cli {
    /// Runs the command and says whether it is green.
    pub(crate) fn run(&self) -> anyhow::Result<bool> {
        let workspace = Workspace::find()?;
        match &self.command {
            Command::Test(args) => test::run(&workspace, args),
            Command::Verify(args) => verify::run(&workspace, args),
            Command::E2e(args) => e2e::run(&workspace, args),
            Command::Image(args) => image::run(&workspace, args),
            Command::Kube(args) => kube::run(&workspace, args),
            Command::Layers => layers::run(&workspace),
            Command::Licences => licences::run(&workspace),
            Command::Sizes => sizes::run(&workspace),
            Command::Messages => messages::run(&workspace),
            Command::Model(args) => model::run(&workspace, args),
            Command::Chaos(args) => chaos::run(&workspace, args),
            Command::Sim(args) => sim::run(&workspace, args),
            Command::Bench(args) => bench::run(&workspace, args),
        }
    }
}
