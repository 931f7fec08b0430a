//! What each command does.

mod admin;
mod bench;
mod bookie_drain;
mod bookie_inspect;
mod cluster;
mod connect;
mod consume;
mod group;
mod ledger;
pub(crate) mod manifest;
mod produce;
mod table;
mod topic;
mod verify;

use clap::{ArgMatches, Subcommand, ValueEnum};

use crate::{
    args::{BookieCommand, Cli, Command, Global},
    error::CliError,
    roles, up,
};

/// `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Columns for people.
    Table,
    /// More columns.
    Wide,
    /// One JSON document.
    Json,
    /// YAML.
    Yaml,
    /// Names only.
    Name,
}

/// Commands that talk to a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Make topics and groups be as manifests say; the manifests of Kubernetes.
    Apply(manifest::ApplyArgs),
    /// List topics as objects.
    Get(manifest::GetArgs),
    /// Show a topic as an object, with its claim and configuration.
    Describe(manifest::DescribeArgs),
    /// Delete topics; their records stay for a while, and applying again brings them back.
    Delete(manifest::DeleteArgs),
    /// Show what apply would change; exit code 1 when it would change anything.
    Diff(manifest::DiffArgs),
    /// Create, list, describe, alter, delete topics.
    #[command(subcommand)]
    Topic(topic::TopicCommand),
    /// Write records, one per line of the input.
    Produce(produce::ProduceArgs),
    /// Read records, one per line of the output.
    Consume(consume::ConsumeArgs),
    /// Consumer groups: members, committed offsets, lag.
    #[command(subcommand)]
    Group(group::GroupCommand),
    /// Write and read with a checker of lost, duplicated, reordered records, for a bounded time.
    Verify(verify::VerifyArgs),
    /// The cluster as a whole.
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Ledgers: where a partition's records are stored.
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// One partition of a topic.
    #[command(subcommand)]
    Partition(ledger::PartitionCommand),
    /// What cannot be undone: lost and retired bookies, ledgers closed by force.
    #[command(subcommand)]
    Admin(admin::AdminCommand),
    /// Measure throughput and latency.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

/// Runs what was typed.
pub(crate) fn run(cli: Cli, matches: &ArgMatches) -> Result<(), CliError> {
    match cli.command {
        Command::Up(args) => up::run(&cli.global, args),
        Command::Meta(flags) => roles::run::<roles::meta::Meta>(&cli.global, flags, matches),
        Command::Bookie(args) => match args.command {
            Some(BookieCommand::Inspect { data_dir, check, output }) => {
                bookie_inspect::run(&data_dir, check, output)
            }
            Some(BookieCommand::Drain { bookie, undo, no_wait }) => {
                bookie_drain::run(&cli.global, &bookie, undo, !no_wait)
            }
            Some(BookieCommand::Describe { bookie, output }) => {
                bookie_drain::describe(&cli.global, &bookie, output)
            }
            None => roles::run::<roles::bookie::Bookie>(&cli.global, args.role, matches),
        },
        Command::Broker(flags) => roles::run::<roles::broker::Broker>(&cli.global, flags, matches),
        Command::Client(command) => client(&cli.global, command),
        Command::Completion { shell } => completion(shell),
    }
}

fn client(global: &Global, command: ClientCommand) -> Result<(), CliError> {
    match command {
        ClientCommand::Apply(a) => manifest::apply(global, a),
        ClientCommand::Get(a) => manifest::get(global, a),
        ClientCommand::Describe(a) => manifest::describe(global, a),
        ClientCommand::Delete(a) => manifest::delete(global, a),
        ClientCommand::Diff(a) => manifest::diff(global, a),
        ClientCommand::Topic(c) => topic::run(global, c),
        ClientCommand::Produce(a) => produce::run(global, a),
        ClientCommand::Consume(a) => consume::run(global, a),
        ClientCommand::Group(c) => group::run(global, c),
        ClientCommand::Verify(a) => verify::run(global, a),
        ClientCommand::Cluster(c) => cluster::run(global, c),
        ClientCommand::Ledger(c) => ledger::run(global, c),
        ClientCommand::Partition(c) => ledger::run_partition(global, c),
        ClientCommand::Admin(c) => admin::run(global, c),
        ClientCommand::Bench(c) => bench::run(global, c),
    }
}

/// A client's error as the user sees it.
pub(crate) fn connect_failed(e: &tidemill_client::ClientError) -> CliError {
    connect::failed(e)
}

fn completion(shell: clap_complete::Shell) -> Result<(), CliError> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut crate::args::command(), "tidemill", &mut out);
    crate::output::write_to(&mut std::io::stdout().lock(), &out)
}
