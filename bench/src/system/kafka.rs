//! Kafka 4.4 in KRaft mode: three nodes that are brokers and controllers.

use std::{fs, process::Command, time::Duration};

use super::{Client, Place, Running, System, java};
use crate::{
    files,
    process::{self, Server},
    work::Work,
};

const POM: &str = "kafka";
const PEER: &str = "Kafka";

pub(super) struct Kafka {
    place: Place,
    /// Each append is flushed before it counts as stored.
    flush: bool,
}

impl Kafka {
    pub(super) fn new(place: Place, flush: bool) -> Self {
        Self { place, flush }
    }

    fn java(&self, heap: &str) -> Command {
        let mut java = Command::new("java");
        java.args([
            &format!("-Xms{heap}"),
            &format!("-Xmx{heap}"),
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp",
            &java::all_of(&java::jars(&self.place, POM)),
        ]);
        java
    }
}

impl System for Kafka {
    fn name(&self) -> String {
        if self.flush { "Kafka, flush".to_owned() } else { "Kafka".to_owned() }
    }

    fn synced(&self) -> bool {
        self.flush
    }

    fn fetch(&self) -> anyhow::Result<()> {
        java::prepare(&self.place, POM, PEER)
    }

    fn start(&self) -> anyhow::Result<Running> {
        files::emptied(&self.place.data)?;
        fs::create_dir_all(&self.place.logs)?;
        let ports = process::ports(6)?;
        let (clients, controllers) = ports.split_at(3);
        let voters: Vec<String> =
            controllers.iter().zip(1..).map(|(p, id)| format!("{id}@127.0.0.1:{p}")).collect();
        let mut servers = Vec::new();
        for ((client, controller), id) in clients.iter().zip(controllers).zip(1..) {
            let dir = self.place.data.join(id.to_string());
            fs::create_dir_all(&dir)?;
            let flush = if self.flush { "log.flush.interval.messages=1\n" } else { "" };
            let config = format!(
                "process.roles=broker,controller\nnode.id={id}\ncontroller.quorum.voters={}\n\
                 listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}\n\
                 controller.listener.names=CONTROLLER\nlog.dirs={}\ndefault.replication.factor=3\n\
                 min.insync.replicas=2\noffsets.topic.replication.factor=3\n\
                 transaction.state.log.replication.factor=3\ngroup.initial.rebalance.delay.ms=0\n{flush}",
                voters.join(","),
                dir.join("log").display()
            );
            let file = dir.join("server.properties");
            fs::write(&file, config)?;
            let mut format = self.java("256m");
            format
                .args(["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAQACAAAAAAAAAAA", "-c"])
                .arg(&file);
            process::done(format)?;
        }
        for id in 1..=3 {
            let mut server = self.java("1g");
            let file = self.place.data.join(id.to_string()).join("server.properties");
            server.arg("kafka.Kafka").arg(file);
            servers.push(Server::start(server, self.place.logs.join(format!("kafka-{id}.log")))?);
        }
        for port in clients {
            process::wait_for(*port, &mut servers, Duration::from_secs(120))?;
        }
        let address: Vec<String> = clients.iter().map(|p| format!("127.0.0.1:{p}")).collect();
        Ok(Running { servers, address: address.join(",") })
    }

    fn create(&self, running: &Running, work: &Work) -> anyhow::Result<()> {
        java::create(&self.place, POM, PEER, &running.address, work)
    }

    fn client(&self, running: &Running, work: &Work, written: u64) -> Client {
        let mut c = java::client(&self.place, (POM, PEER, &running.address), work, written, None);
        let when =
            if self.flush { "flushed before each acknowledgement" } else { "acknowledged from page caches" };
        c.settings = format!("acks=all, min.insync.replicas=2, {when}, heap 1 GiB a node; {}", c.settings);
        c
    }
}
