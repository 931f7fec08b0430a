//! RabbitMQ: three nodes, quorum queues, publisher confirms.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use super::{Client, Place, Running, System, java};
use crate::{
    files,
    process::{self, Server},
    work::Work,
};

const POM: &str = "clients";
const PEER: &str = "Rabbit";
const RECORDS_IN_FLIGHT: u32 = 4_000;

pub(super) struct Rabbit {
    place: Place,
}

impl Rabbit {
    pub(super) fn new(place: Place) -> Self {
        Self { place }
    }
}

/// Where Debian's package puts the scripts.
fn scripts() -> anyhow::Result<PathBuf> {
    let found = fs::read_dir("/usr/lib/rabbitmq/lib").into_iter().flatten().flatten();
    found
        .map(|e| e.path().join("sbin"))
        .find(|p| p.join("rabbitmq-server").exists())
        .context("no RabbitMQ: apt-get install --no-install-recommends rabbitmq-server")
}

/// Erlang's environment of a command on this cluster.
fn within<'a>(command: &'a mut Command, home: &Path, epmd: u16) -> &'a mut Command {
    command
        .env("HOME", home)
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("ERL_EPMD_PORT", epmd.to_string())
        .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
}

impl System for Rabbit {
    fn name(&self) -> String {
        "RabbitMQ, quorum".to_owned()
    }

    fn synced(&self) -> bool {
        true
    }

    fn fetch(&self) -> anyhow::Result<()> {
        scripts()?;
        java::prepare(&self.place, POM, PEER)
    }

    fn start(&self) -> anyhow::Result<Running> {
        let (scripts, home) = (scripts()?, self.place.data.clone());
        files::emptied(&home)?;
        fs::create_dir_all(&self.place.logs)?;
        let ports = process::ports(7)?;
        let (epmd, clients, nodes) = (ports[6], &ports[..3], &ports[3..6]);
        let cookie = home.join(".erlang.cookie");
        fs::write(&cookie, "TIDEMILLBENCH")?;
        fs::set_permissions(&cookie, std::os::unix::fs::PermissionsExt::from_mode(0o400))?;
        fs::write(home.join("plugins"), "[].")?;
        let mut mapper = Command::new("epmd");
        mapper.args(["-address", "127.0.0.1", "-port", &epmd.to_string()]);
        let mut servers = vec![Server::start(mapper, self.place.logs.join("rabbitmq-epmd.log"))?];
        for ((client, node), id) in clients.iter().zip(nodes).zip(1..) {
            let dir = home.join(id.to_string());
            fs::create_dir_all(&dir)?;
            let peers: String = (1..=3)
                .map(|j| format!("cluster_formation.classic_config.nodes.{j} = r{j}@localhost\n"))
                .collect();
            let config = format!(
                "listeners.tcp.1 = 127.0.0.1:{client}\nloopback_users = none\ndisk_free_limit.absolute = 1GB\n\
                 cluster_formation.peer_discovery_backend = classic_config\n{peers}"
            );
            fs::write(dir.join("rabbitmq.conf"), config)?;
            let mut server = Command::new(scripts.join("rabbitmq-server"));
            within(&mut server, &home, epmd)
                .env("RABBITMQ_NODENAME", format!("r{id}@localhost"))
                .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
                .env("RABBITMQ_NODE_PORT", client.to_string())
                .env("RABBITMQ_DIST_PORT", node.to_string())
                .env("RABBITMQ_CONFIG_FILE", dir.join("rabbitmq"))
                .env("RABBITMQ_MNESIA_BASE", dir.join("mnesia"))
                .env("RABBITMQ_LOG_BASE", dir.join("log"))
                .env("RABBITMQ_ENABLED_PLUGINS_FILE", home.join("plugins"))
                .env("RABBITMQ_PID_FILE", dir.join("pid"))
                .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}");
            servers.push(Server::start(server, self.place.logs.join(format!("rabbitmq-{id}.log")))?);
        }
        for port in clients {
            process::wait_for(*port, &mut servers, Duration::from_secs(180))?;
        }
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let mut status = Command::new(scripts.join("rabbitmqctl"));
            within(&mut status, &home, epmd).args([
                "-q",
                "-n",
                "r1@localhost",
                "cluster_status",
                "--formatter",
                "json",
            ]);
            let status = process::done(status).unwrap_or_default();
            let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
            if status["running_nodes"].as_array().is_some_and(|n| n.len() == 3) {
                break;
            }
            if Instant::now() > end {
                bail!("the three nodes do not form a cluster");
            }
        }
        let address: Vec<String> = clients.iter().map(|p| format!("127.0.0.1:{p}")).collect();
        Ok(Running { servers, address: address.join(",") })
    }

    fn create(&self, running: &Running, work: &Work) -> anyhow::Result<()> {
        java::create(&self.place, POM, PEER, &running.address, work)
    }

    fn client(&self, running: &Running, work: &Work, written: u64) -> Client {
        let by = (POM, PEER, running.address.as_str());
        let mut c = java::client(&self.place, by, work, written, Some(RECORDS_IN_FLIGHT));
        c.settings = format!("a quorum queue with three members per partition; {}", c.settings);
        c
    }
}
