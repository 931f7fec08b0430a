//! Ourselves: one meta, three bookies, one broker, each a process; three copies, two acknowledge.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use anyhow::ensure;

use super::{Client, Place, Running, System};
use crate::{
    files,
    process::{self, Server},
    work::{IN_FLIGHT, Kind, MEMORY, Work},
};

pub(super) struct Tidemill {
    place: Place,
    binary: PathBuf,
}

impl Tidemill {
    pub(super) fn new(place: Place, binary: PathBuf) -> Self {
        Self { place, binary }
    }

    fn command(&self) -> Command {
        Command::new(&self.binary)
    }
}

impl System for Tidemill {
    fn name(&self) -> String {
        "Tidemill".to_owned()
    }

    fn synced(&self) -> bool {
        true
    }

    fn fetch(&self) -> anyhow::Result<()> {
        let b = self.binary.display();
        ensure!(self.binary.is_file(), "{b} is missing: cargo build --release -p tidemill");
        Ok(())
    }

    fn start(&self) -> anyhow::Result<Running> {
        files::emptied(&self.place.data)?;
        fs::create_dir_all(&self.place.logs)?;
        let ports = process::ports(2)?;
        let mut up = self.command();
        up.args(["up", "--processes", "--restart=never"])
            .arg(format!("--data-dir={}", self.place.data.display()))
            .arg(format!("--listen=127.0.0.1:{}", ports[0]))
            .arg(format!("--http=127.0.0.1:{}", ports[1]));
        let server = Server::start(up, self.place.logs.join("tidemill.log"))?;
        let mut servers = vec![server];
        process::wait_for(ports[0], &mut servers, Duration::from_secs(60))?;
        Ok(Running { servers, address: format!("127.0.0.1:{}", ports[0]) })
    }

    fn create(&self, running: &Running, work: &Work) -> anyhow::Result<()> {
        let mut create = self.command();
        create
            .args(["--server", &running.address, "topic", "create", &work.topic()])
            .arg(format!("--partitions={}", work.partitions));
        process::done(create).map(|_| ())
    }

    fn client(&self, running: &Running, work: &Work, _written: u64) -> Client {
        let mut c = self.command();
        c.args(["--server", &running.address, "bench"]);
        let mode = match work.kind {
            Kind::Throughput | Kind::Latency(_) => "produce",
            Kind::EndToEnd(_) => "e2e",
            Kind::CatchUp => "consume",
        };
        c.args([mode, "--json", "--topic", &work.topic()]);
        if work.kind == Kind::CatchUp {
            return Client { command: c, settings: "tidemill bench consume".to_owned() };
        }
        let rate = match work.kind {
            Kind::Latency(rate) | Kind::EndToEnd(rate) => rate,
            Kind::Throughput | Kind::CatchUp => 0,
        };
        c.arg(format!("--partitions={}", work.partitions))
            .arg(format!("--record-bytes={}B", work.record_bytes))
            .arg(format!("--batch-bytes={}B", work.batch_bytes))
            .arg(format!("--linger={}ms", work.linger.as_millis()))
            .arg(format!("--rate={rate}"))
            .arg(format!("--in-flight={IN_FLIGHT}"))
            .arg(format!("--warmup={}ms", work.warmup.as_millis()))
            .arg(format!("--duration={}ms", work.time.as_millis()));
        let settings = format!(
            "copies 3, ack quorum 2, fdatasync before each acknowledgement; batch {} KiB, linger {} ms, {IN_FLIGHT} batches of a partition \
             in flight, {} MiB undecided, idempotent",
            work.batch_bytes >> 10,
            work.linger.as_millis(),
            MEMORY >> 20
        );
        Client { command: c, settings }
    }
}
