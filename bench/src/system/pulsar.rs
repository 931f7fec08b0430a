//! Pulsar 4.0: one ZooKeeper, three bookies with a synced journal, one broker.

use std::{fs, process::Command, time::Duration};

use super::{Client, Place, Running, System, java};
use crate::{
    files,
    process::{self, Server},
    work::Work,
};

const POM: &str = "pulsar";
const PEER: &str = "Pulsar";
/// What the servers reach into of the JDK.
const OPENS: [&str; 7] = [
    "java.base/sun.net",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
    "java.base/jdk.internal.platform",
    "java.base/java.nio",
    "java.base/jdk.internal.misc",
    "java.base/java.util.zip",
];
const DRIVERS: [&str; 2] = [
    "-Dbookkeeper.metadata.bookie.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataBookieDriver",
    "-Dbookkeeper.metadata.client.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver",
];

pub(super) struct Pulsar {
    place: Place,
}

impl Pulsar {
    pub(super) fn new(place: Place) -> Self {
        Self { place }
    }

    fn java(&self, heap: &[&str]) -> Command {
        let mut java = Command::new("java");
        java.args(heap).args([
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=10",
            "-Dio.netty.leakDetectionLevel=disabled",
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        ]);
        java.args(OPENS.iter().flat_map(|o| ["--add-opens".to_owned(), format!("{o}=ALL-UNNAMED")]))
            .args(DRIVERS)
            .arg("-cp")
            .arg(java::all_of(&java::jars(&self.place, POM)));
        java
    }
}

impl System for Pulsar {
    fn name(&self) -> String {
        "Pulsar, journal sync".to_owned()
    }

    fn synced(&self) -> bool {
        true
    }

    fn fetch(&self) -> anyhow::Result<()> {
        java::prepare(&self.place, POM, PEER)?;
        // Its log4j binding does not fit its log4j; slf4j-simple logs instead.
        for jar in fs::read_dir(java::jars(&self.place, POM))?.flatten() {
            if jar.file_name().to_string_lossy().starts_with("log4j-slf4j2-impl-") {
                fs::remove_file(jar.path())?;
            }
        }
        Ok(())
    }

    fn start(&self) -> anyhow::Result<Running> {
        let data = &self.place.data;
        files::emptied(data)?;
        fs::create_dir_all(&self.place.logs)?;
        let log = |name: &str| self.place.logs.join(format!("pulsar-{name}.log"));
        let ports = process::ports(6)?;
        let (zk, bookies, binary, web) = (ports[0], &ports[1..4], ports[4], ports[5]);
        let write = |name: &str, text: String| {
            let file = data.join(name);
            fs::write(&file, text).map(|()| file)
        };
        let zoo = write(
            "zoo.cfg",
            format!(
                "tickTime=2000\ndataDir={}\nclientPort={zk}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n",
                data.join("zk").display()
            ),
        )?;
        let mut server = self.java(&["-Xmx256m"]);
        server.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(zoo);
        let mut servers = vec![Server::start(server, log("zookeeper"))?];
        process::wait_for(zk, &mut servers, Duration::from_secs(60))?;
        let store = format!("zk:127.0.0.1:{zk}");
        let mut setup = self.java(&["-Xmx256m"]);
        setup.args(["org.apache.pulsar.PulsarClusterMetadataSetup", "--cluster", "c"]).args([
            "--metadata-store",
            &store,
            "--configuration-metadata-store",
            &store,
            "--web-service-url",
            &format!("http://127.0.0.1:{web}"),
            "--broker-service-url",
            &format!("pulsar://127.0.0.1:{binary}"),
        ]);
        process::done(setup)?;
        for (port, id) in bookies.iter().zip(1..) {
            let dir = data.join(format!("b{id}"));
            let config = write(
                &format!("b{id}.conf"),
                format!(
                    "bookiePort={port}\nbookieId=b{id}\nadvertisedAddress=127.0.0.1\nlisteningInterface=lo\n\
                     allowLoopback=true\nmetadataServiceUri=zk+hierarchical://127.0.0.1:{zk}/ledgers\n\
                     journalDirectories={0}/journal\nledgerDirectories={0}/ledgers\n\
                     ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage\n\
                     journalSyncData=true\njournalAdaptiveGroupWrites=true\njournalMaxGroupWaitMSec=1\n\
                     journalMaxBackups=0\nhttpServerEnabled=false\nenableStatistics=false\n\
                     diskUsageThreshold=0.98\ndiskUsageWarnThreshold=0.97\n",
                    dir.display()
                ),
            )?;
            let mut server = self.java(&["-Xms512m", "-Xmx1g", "-XX:MaxDirectMemorySize=1g"]);
            server.args(["org.apache.bookkeeper.server.Main", "--conf"]).arg(config);
            servers.push(Server::start(server, log(&format!("bookie-{id}")))?);
        }
        for port in bookies {
            process::wait_for(*port, &mut servers, Duration::from_secs(120))?;
        }
        let config = write(
            "broker.conf",
            format!(
                "clusterName=c\nmetadataStoreUrl={store}\nconfigurationMetadataStoreUrl={store}\n\
                 brokerServicePort={binary}\nwebServicePort={web}\nbindAddress=127.0.0.1\nadvertisedAddress=127.0.0.1\n\
                 managedLedgerDefaultEnsembleSize=3\nmanagedLedgerDefaultWriteQuorum=3\nmanagedLedgerDefaultAckQuorum=2\n\
                 defaultRetentionTimeInMinutes=-1\ndefaultRetentionSizeInMB=-1\nbrokerDeleteInactiveTopicsEnabled=false\n\
                 loadBalancerAutoBundleSplitEnabled=false\nfunctionsWorkerEnabled=false\n"
            ),
        )?;
        let mut server = self.java(&["-Xms512m", "-Xmx1g", "-XX:MaxDirectMemorySize=2g"]);
        server.args(["org.apache.pulsar.PulsarBrokerStarter", "--broker-conf"]).arg(config);
        servers.push(Server::start(server, log("broker"))?);
        for port in [binary, web] {
            process::wait_for(port, &mut servers, Duration::from_secs(120))?;
        }
        Ok(Running { servers, address: format!("pulsar://127.0.0.1:{binary};http://127.0.0.1:{web}") })
    }

    fn create(&self, running: &Running, work: &Work) -> anyhow::Result<()> {
        java::create(&self.place, POM, PEER, &running.address, work)
    }

    fn client(&self, running: &Running, work: &Work, written: u64) -> Client {
        let mut c = java::client(&self.place, (POM, PEER, &running.address), work, written, None);
        c.settings = format!("ensemble 3, write quorum 3, ack quorum 2, journal synced; {}", c.settings);
        c
    }
}
