//! The systems that are compared.

mod java;
mod kafka;
mod nats;
mod pulsar;
mod rabbitmq;
mod tidemill;

use std::path::PathBuf;

use crate::{
    args::{Args, PeerName},
    process::Server,
    work::Work,
};

/// A started system.
pub(crate) struct Running {
    pub(crate) servers: Vec<Server>,
    /// As its client wants it.
    pub(crate) address: String,
}

/// How a load client is started, and its settings for people.
pub(crate) struct Client {
    pub(crate) command: std::process::Command,
    pub(crate) settings: String,
}

/// A system with three copies on this machine.
pub(crate) trait System {
    /// For people.
    fn name(&self) -> String;

    /// Whether an acknowledgement waits for the disk.
    fn synced(&self) -> bool;

    /// Gets what it needs. An error means that the system is missing.
    fn fetch(&self) -> anyhow::Result<()>;

    /// Starts it on an empty directory and waits until it takes work.
    fn start(&self) -> anyhow::Result<Running>;

    /// Makes the topic of a piece of work.
    fn create(&self, running: &Running, work: &Work) -> anyhow::Result<()>;

    /// The client that does it; `written` records were written to its topic.
    fn client(&self, running: &Running, work: &Work, written: u64) -> Client;
}

/// Folders of a system.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its data, emptied before each start.
    pub(crate) data: PathBuf,
    /// Logs of its servers.
    pub(crate) logs: PathBuf,
    /// Packages.
    pub(crate) packages: PathBuf,
    /// Sources of the clients.
    pub(crate) clients: PathBuf,
}

/// Tidemill first, then the peers.
pub(crate) fn all(args: &Args) -> anyhow::Result<Vec<Box<dyn System>>> {
    let place = |name: &str| -> anyhow::Result<Place> {
        let whole = |p: &PathBuf| std::path::absolute(p);
        Ok(Place {
            data: whole(&args.data)?.join(name),
            logs: whole(&args.out)?.join("logs"),
            packages: whole(&args.packages)?,
            clients: whole(&args.clients)?,
        })
    };
    let binary = std::path::absolute(&args.binary)?;
    let mut all: Vec<Box<dyn System>> = vec![Box::new(tidemill::Tidemill::new(place("tidemill")?, binary))];
    for peer in &args.peers {
        match peer {
            PeerName::Kafka => {
                all.push(Box::new(kafka::Kafka::new(place("kafka")?, false)));
                all.push(Box::new(kafka::Kafka::new(place("kafka-flush")?, true)));
            }
            PeerName::Nats => all.push(Box::new(nats::Nats::new(place("nats")?))),
            PeerName::Pulsar => all.push(Box::new(pulsar::Pulsar::new(place("pulsar")?))),
            PeerName::Rabbitmq => all.push(Box::new(rabbitmq::Rabbit::new(place("rabbitmq")?))),
        }
    }
    Ok(all)
}
