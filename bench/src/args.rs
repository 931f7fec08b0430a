//! What can be asked for.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// A system beside Tidemill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeerName {
    /// Kafka, three combined nodes; once as it comes and once with a flush before each acknowledgement.
    Kafka,
    /// NATS JetStream, three servers that sync before they acknowledge.
    Nats,
    /// Pulsar, one broker, three bookies with a synced journal, one ZooKeeper.
    Pulsar,
    /// RabbitMQ, three nodes, quorum queues.
    Rabbitmq,
}

/// Compare Tidemill with other systems on this machine.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
pub(crate) struct Args {
    /// Systems to compare with, separated by commas; none: Tidemill alone.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) peers: Vec<PeerName>,
    /// Two rounds of short runs instead of three of long ones.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only work whose name contains this, such as `100 B` or `1000/s`; may be given several times.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// Where data lies while a system runs; removed afterwards. Its disk is the one that is measured.
    #[arg(long, default_value = "target/bench/data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Where the peers' packages are kept.
    #[arg(long, default_value = "target/bench/peers", value_name = "DIR")]
    pub(crate) packages: PathBuf,
    /// Where the results go: results.json, table.md and charts.
    #[arg(long, default_value = "target/bench/results", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// The tidemill binary.
    #[arg(long, default_value = "target/release/tidemill", value_name = "FILE")]
    pub(crate) binary: PathBuf,
    /// The folder with the peers' clients.
    #[arg(long, default_value = "bench/peers", value_name = "DIR")]
    pub(crate) clients: PathBuf,
    /// Most GiB that a system may write into its directory; a run that comes there is stopped and said to be short.
    #[arg(long, default_value_t = 24, value_name = "GIB", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cap: u64,
    /// Leave out the limits of the machine.
    #[arg(long)]
    pub(crate) no_limits: bool,
}

impl Args {
    /// Rounds over all systems.
    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 2 } else { 3 }
    }
}
