//! NATS Server 2.15 with JetStream: three nodes that sync before they acknowledge.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use anyhow::Context;

use super::{Client, Place, Running, System, java};
use crate::{
    files,
    process::{self, Server},
    work::Work,
};

const POM: &str = "clients";
const PEER: &str = "Nats";
const MODULE: &str = "github.com/nats-io/nats-server/v2@v2.15.2";
/// What its publishers are told to keep to; more only queue.
const RECORDS_IN_FLIGHT: u32 = 4_000;

pub(super) struct Nats {
    place: Place,
}

impl Nats {
    pub(super) fn new(place: Place) -> Self {
        Self { place }
    }

    fn binary(&self) -> PathBuf {
        self.place.packages.join("bin").join("nats-server")
    }
}

impl System for Nats {
    fn name(&self) -> String {
        "NATS, sync always".to_owned()
    }

    fn synced(&self) -> bool {
        true
    }

    fn fetch(&self) -> anyhow::Result<()> {
        if !self.binary().exists() {
            let mut go = Command::new("go");
            go.args(["install", MODULE]).env("GOBIN", self.place.packages.join("bin"));
            process::done(go).context("the server is a Go module")?;
        }
        java::prepare(&self.place, POM, PEER)
    }

    fn start(&self) -> anyhow::Result<Running> {
        files::emptied(&self.place.data)?;
        fs::create_dir_all(&self.place.logs)?;
        let ports = process::ports(6)?;
        let (clients, routes) = ports.split_at(3);
        let all: Vec<String> = routes.iter().map(|p| format!("nats://127.0.0.1:{p}")).collect();
        let mut servers = Vec::new();
        for ((client, route), id) in clients.iter().zip(routes).zip(1..) {
            let store = self.place.data.join(id.to_string());
            fs::create_dir_all(&store)?;
            let config = format!(
                "server_name: n{id}\nlisten: 127.0.0.1:{client}\nmax_pending: 512MB\n\
                 jetstream {{ store_dir: \"{}\", max_file_store: 40GB, sync_interval: always }}\n\
                 cluster {{ name: c, listen: 127.0.0.1:{route}, routes: [{}] }}\n",
                store.display(),
                all.join(",")
            );
            let file = self.place.data.join(format!("{id}.conf"));
            fs::write(&file, config)?;
            let mut server = Command::new(self.binary());
            server.arg("-c").arg(file);
            servers.push(Server::start(server, self.place.logs.join(format!("nats-{id}.log")))?);
        }
        for port in clients {
            process::wait_for(*port, &mut servers, Duration::from_secs(30))?;
        }
        let address: Vec<String> = clients.iter().map(|p| format!("nats://127.0.0.1:{p}")).collect();
        let running = Running { servers, address: address.join(",") };
        // Ports open before the group that keeps the streams has a leader.
        let first = java::load(&self.place, POM, PEER, &running.address, "started", "first");
        process::done(first)?;
        Ok(running)
    }

    fn create(&self, running: &Running, work: &Work) -> anyhow::Result<()> {
        java::create(&self.place, POM, PEER, &running.address, work)
    }

    fn client(&self, running: &Running, work: &Work, written: u64) -> Client {
        let by = (POM, PEER, running.address.as_str());
        let mut c = java::client(&self.place, by, work, written, Some(RECORDS_IN_FLIGHT));
        c.settings = format!("a file stream per partition, sync_interval always; {}", c.settings);
        c
    }
}
