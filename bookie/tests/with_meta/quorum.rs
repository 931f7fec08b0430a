//! Three members of a quorum and a broker's session with them.

use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;
use tidemill_meta::{MetaConfig, MetaHandle};
use tidemill_meta_client::{MetaClient, MetaClientConfig, RenewalReport, Session};
use tidemill_runtime::{Health, Metrics, Supervisor};
use tidemill_types::{
    BookieId, ClusterId, EntryId, Epoch, Incarnation, LedgerId, LedgerRecord, Member, MemberId, MemberRole,
    PartitionId, TopicConfig, TopicId, TopicName,
    member::Endpoint,
    meta::{AcquireItem, Answer, CloseLedger, CreateLedger, MemberSpec, Query},
};
use uuid::Uuid;

use crate::{
    shelf::Addresses,
    wait::{soon, until},
};

/// Three members.
pub(crate) struct Quorum {
    members: Mutex<Vec<(MetaHandle, Supervisor)>>,
    addresses: Vec<String>,
    cluster: ClusterId,
    sup: Supervisor,
    _disks: TempDir,
}

impl Addresses for Quorum {
    fn addresses(&self) -> Vec<String> {
        self.addresses.clone()
    }
}

impl Quorum {
    /// Starts them; there is no cluster yet.
    pub(crate) async fn start() -> Self {
        let disks = tempfile::tempdir().unwrap();
        let mut members = Vec::new();
        for i in 0..3 {
            let config = MetaConfig {
                data_dir: disks.path().join(format!("meta-{i}")),
                listen: "127.0.0.1:0".parse().unwrap(),
                name: format!("meta-{i}"),
                ..MetaConfig::default()
            };
            let sup = Supervisor::new(Health::new());
            members.push((tidemill_meta::start(config, &sup, &Metrics::new()).await.unwrap(), sup));
        }
        let addresses = members.iter().map(|(m, _)| m.addr().to_string()).collect();
        let cluster = ClusterId(Uuid::new_v4());
        let sup = Supervisor::new(Health::new());
        Self { members: Mutex::new(members), addresses, cluster, sup, _disks: disks }
    }

    fn client(&self) -> MetaClient {
        MetaClient::connect(MetaClientConfig::new(self.addresses.clone()), &self.sup)
    }

    /// Makes the cluster.
    pub(crate) async fn initialise(&self) {
        soon("the cluster", self.client().initialize(self.cluster, &self.addresses)).await.unwrap();
    }

    /// Stops one of the members for good.
    pub(crate) async fn stop_one(&self) {
        let (member, sup) = self.members.lock().remove(0);
        soon("a member's end", member.stop()).await;
        soon("a member's end", sup.stop()).await;
    }

    /// A broker with a session.
    pub(crate) async fn broker(&self) -> Broker {
        let client = self.client();
        let spec = MemberSpec {
            cluster: Some(self.cluster),
            id: MemberId(Uuid::new_v4()),
            role: MemberRole::Broker,
            name: "broker-0".into(),
            incarnation: Incarnation(7),
            endpoint: Endpoint { host: "localhost".into(), port: 1 },
            zone: String::new(),
            free_bytes: 0,
            read_only: false,
        };
        let opened = client.open_session(spec, Arc::new(RenewalReport::default));
        let session = soon("a session", opened).await.unwrap();
        Broker { session, client }
    }
}

impl Drop for Quorum {
    fn drop(&mut self) {
        self.sup.token().cancel();
        for (_, sup) in self.members.lock().iter() {
            sup.token().cancel();
        }
    }
}

/// A broker's session.
pub(crate) struct Broker {
    session: Session,
    client: MetaClient,
}

impl Broker {
    /// A new topic's partition, owned once the planner has assigned it.
    pub(crate) async fn partition(&self, name: &str) -> (PartitionId, Epoch) {
        let name = TopicName::new(name).unwrap();
        let topic = self.session.create_topic(name, 1, TopicConfig::default()).await.unwrap().unwrap();
        let partition = PartitionId { topic: topic.id, index: 0 };
        until("ownership", async || {
            let item = AcquireItem { partition, seen: Epoch(0) };
            let got = self.session.acquire(vec![item]).await.unwrap().unwrap().remove(0);
            got.ok().map(|p| (partition, p.epoch))
        })
        .await
    }

    /// A new ledger on these bookies.
    pub(crate) async fn ledger(
        &self,
        (partition, epoch): (PartitionId, Epoch),
        ensemble: &[BookieId],
    ) -> LedgerRecord {
        let ledger = CreateLedger { partition, epoch, ensemble: ensemble.to_vec(), ack_quorum: 1 };
        self.session.create_ledger(ledger).await.unwrap().unwrap()
    }

    /// Closes a ledger at this end, as its owner.
    pub(crate) async fn close(&self, ledger: LedgerId, last: i64) -> LedgerRecord {
        let record = self.client.ledger(ledger).await.unwrap().unwrap();
        let close = CloseLedger {
            ledger,
            version: record.version,
            last_entry: EntryId(last),
            length: 0,
            records: 0,
            fragments: vec![],
            under: vec![],
            limbo_counts: vec![],
        };
        self.session.close_ledger(close, Some(record.epoch)).await.unwrap().unwrap()
    }

    /// Deletes a topic.
    pub(crate) async fn delete(&self, topic: TopicId) {
        self.session.delete_topic(topic).await.unwrap().unwrap();
    }

    /// A member as the quorum knows it.
    pub(crate) async fn member(&self, id: MemberId) -> Member {
        match self.client.read(&Query::Members).await.unwrap() {
            (Answer::Members(all), _) => all.into_iter().find(|m| m.id == id).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}
