//! A broker as the quorum sees one: a session, a partition, ledgers.

use std::sync::Arc;

use tidemill_meta_client::{MetaClient, MetaClientConfig, RenewalReport, Session};
use tidemill_runtime::{Health, Supervisor};
use tidemill_types::{
    BookieId, EntryId, Epoch, Incarnation, LedgerId, LedgerRecord, MemberId, MemberRole, PartitionId,
    TopicConfig, TopicId, TopicName,
    member::Endpoint,
    meta::{AcquireItem, Assignment, CloseLedger, Command, CreateLedger, MemberSpec},
};
use uuid::Uuid;

use crate::quorum::Quorum;

/// Owner of every partition that it makes.
pub(crate) struct Broker {
    pub(crate) id: MemberId,
    pub(crate) session: Session,
    quorum: Quorum,
    sup: Supervisor,
    _client: MetaClient,
}

impl Broker {
    /// Opens a session.
    pub(crate) async fn start(quorum: &Quorum) -> Self {
        let sup = Supervisor::new(Health::new());
        let client = MetaClient::connect(MetaClientConfig::new(vec![quorum.addr.to_string()]), &sup);
        let id = MemberId(Uuid::new_v4());
        let spec = MemberSpec {
            cluster: None,
            id,
            role: MemberRole::Broker,
            name: "broker".into(),
            incarnation: Incarnation(7),
            endpoint: Endpoint { host: "localhost".into(), port: 1 },
            zone: String::new(),
            free_bytes: 0,
            read_only: false,
        };
        let session = client.open_session(spec, Arc::new(RenewalReport::default)).await.unwrap();
        Self { id, session, quorum: quorum.clone(), sup, _client: client }
    }

    /// A topic with one partition that this broker owns, in the epoch that it got.
    pub(crate) async fn topic(&self, name: &str) -> (PartitionId, Epoch) {
        let name = TopicName::new(name).unwrap();
        let topic = self.session.create_topic(name, 1, TopicConfig::default()).await.unwrap().unwrap();
        let partition = PartitionId { topic: topic.id, index: 0 };
        let assign = Assignment { partition, broker: Some(self.id) };
        self.quorum.command(Command::Assign(vec![assign])).unwrap();
        let item = AcquireItem { partition, seen: Epoch(0) };
        let got = self.session.acquire(vec![item]).await.unwrap().unwrap().remove(0).unwrap();
        (partition, got.epoch)
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
        let (version, epoch) = self.quorum.look(|s| {
            let l = s.ledger(ledger).unwrap();
            (l.version, l.epoch)
        });
        let close = CloseLedger {
            ledger,
            version,
            last_entry: EntryId(last),
            length: u64::try_from(last + 1).unwrap(),
            records: 0,
            fragments: vec![],
            under: vec![],
            limbo_counts: vec![],
        };
        self.session.close_ledger(close, Some(epoch)).await.unwrap().unwrap()
    }

    /// Deletes a topic with its ledgers' records.
    pub(crate) async fn delete(&self, topic: TopicId) {
        self.session.delete_topic(topic).await.unwrap().unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.sup.token().cancel();
    }
}
