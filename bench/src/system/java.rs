//! The peers' client: compiled once per system against its packages.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use super::{Client, Place};
use crate::{
    process,
    work::{IN_FLIGHT, Kind, MEMORY, Work},
};

/// Fetches the packages of a pom and compiles the load client with `peer`.
pub(super) fn prepare(place: &Place, pom: &str, peer: &str) -> anyhow::Result<()> {
    let jars = jars(place, pom);
    let complete = place.packages.join(format!("{pom}.complete"));
    if !complete.exists() {
        let mut mvn = Command::new("mvn");
        mvn.args(["-q", "-B", "-f"])
            .arg(place.clients.join(format!("{pom}.pom.xml")))
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", jars.display()));
        process::done(mvn).context("the packages come by Maven")?;
        fs::write(&complete, "")?;
    }
    let classes = classes(place, peer);
    fs::create_dir_all(&classes)?;
    let mut javac = Command::new("javac");
    javac.args(["-nowarn", "-d"]).arg(&classes).arg("-cp").arg(all_of(&jars));
    for file in ["Peer", "Settings", "Latencies", "Load", peer] {
        javac.arg(place.clients.join("java").join(format!("{file}.java")));
    }
    process::done(javac).context("the load client needs a JDK from 17 on").map(|_| ())
}

/// Folder of the jars of a pom.
pub(super) fn jars(place: &Place, pom: &str) -> PathBuf {
    place.packages.join(pom)
}

/// As a class path.
pub(super) fn all_of(jars: &Path) -> String {
    format!("{}/*", jars.display())
}

fn classes(place: &Place, peer: &str) -> PathBuf {
    place.packages.join("classes").join(peer)
}

/// `Load PEER ADDRESS TOPIC MODE`.
pub(super) fn load(place: &Place, pom: &str, peer: &str, address: &str, topic: &str, mode: &str) -> Command {
    let mut java = Command::new("java");
    java.args(["-Xms1g", "-Xmx2g", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp"])
        .arg(format!("{}:{}", classes(place, peer).display(), all_of(&jars(place, pom))))
        .args(["Load", peer, address, topic, mode]);
    java
}

/// Makes the topic.
pub(super) fn create(place: &Place, pom: &str, peer: &str, address: &str, work: &Work) -> anyhow::Result<()> {
    let mut c = load(place, pom, peer, address, &work.topic(), "create");
    c.arg(format!("partitions={}", work.partitions));
    process::done(c).map(|_| ())
}

/// The client of a piece of work; at most `records_in_flight` records are unacknowledged, if the system needs that.
pub(super) fn client(
    place: &Place,
    (pom, peer, address): (&str, &str, &str),
    work: &Work,
    written: u64,
    records_in_flight: Option<u32>,
) -> Client {
    let (mode, rate) = match work.kind {
        Kind::Throughput => ("produce", 0),
        Kind::Latency(rate) => ("produce", rate),
        Kind::EndToEnd(rate) => ("e2e", rate),
        Kind::CatchUp => ("consume", 0),
    };
    let mut c = load(place, pom, peer, address, &work.topic(), mode);
    c.arg(format!("partitions={}", work.partitions));
    if work.kind == Kind::CatchUp {
        c.arg(format!("records={written}"));
        return Client { command: c, settings: "its Java client".to_owned() };
    }
    c.arg(format!("rate={rate}"))
        .arg(format!("bytes={}", work.record_bytes))
        .arg(format!("batchBytes={}", work.batch_bytes))
        .arg(format!("lingerMs={}", work.linger.as_millis()))
        .arg(format!("inFlight={IN_FLIGHT}"))
        .arg(format!("memoryBytes={MEMORY}"))
        .arg(format!("warmupMs={}", work.warmup.as_millis()))
        .arg(format!("ms={}", work.time.as_millis()));
    let bound = match records_in_flight {
        Some(n) => {
            c.arg(format!("inFlightRecords={n}"));
            format!("at most {n} records unacknowledged")
        }
        None => format!(
            "batch {} KiB, linger {} ms, {IN_FLIGHT} in flight, {} MiB undecided",
            work.batch_bytes >> 10,
            work.linger.as_millis(),
            MEMORY >> 20
        ),
    };
    Client { command: c, settings: format!("three copies; its Java client: {bound}") }
}
