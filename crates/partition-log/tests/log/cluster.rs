//! Four bookies, the quorum, and as many brokers as a test wants, in one process.

use std::{sync::Arc, time::Duration};

use tidemill_ledger::{LedgerClient, LedgerConfig};
use tidemill_partition_log::{LogContext, LogState, PartitionLog, PartitionLogConfig, ProduceHandle};
use tidemill_record::{Batch, BatchBuilder, Compression, Limits, ProducerFields, check};
use tidemill_runtime::{Clock, ManualClock};
use tidemill_types::{
    ClusterId, Endpoint, Incarnation, LanePosition, MemberId, MemberRole, Offset, PartitionId, Replication,
    TopicConfig, TopicName,
    meta::{AcquireItem, Assignment, BookieSpec, Command, MemberSpec, Reply},
};
use uuid::Uuid;

use crate::{
    bookies::{Bookie, Network},
    quorum::{Client, Quorum},
};

pub(crate) const CLUSTER: ClusterId = ClusterId(Uuid::from_u128(99));
pub(crate) const NOW_MS: i64 = 1_700_000_000_000;

pub(crate) struct Cluster {
    pub(crate) quorum: Arc<Quorum>,
    pub(crate) network: Arc<Network>,
    pub(crate) partition: PartitionId,
    pub(crate) config: PartitionLogConfig,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) struct Broker {
    pub(crate) id: MemberId,
    pub(crate) meta: Arc<Client>,
    pub(crate) ctx: Arc<LogContext>,
    clock: Arc<ManualClock>,
}

fn id(n: u128) -> MemberId {
    MemberId(Uuid::from_u128(n))
}

fn spec(id: MemberId, role: MemberRole) -> MemberSpec {
    MemberSpec {
        cluster: Some(CLUSTER),
        id,
        role,
        name: format!("{role:?}-{id}"),
        incarnation: Incarnation(1),
        endpoint: Endpoint { host: "127.0.0.1".to_owned(), port: 1 },
        zone: String::new(),
        free_bytes: 1 << 40,
        read_only: false,
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(f: impl FnOnce(&mut PartitionLogConfig)) -> Self {
        let quorum = Quorum::new();
        quorum.own(Command::Init { cluster: CLUSTER });
        let bookies: Vec<_> = (1..=4).map(|n| Bookie::new(id(100 + n))).collect();
        for b in &bookies {
            quorum.own(Command::BookieBoot(BookieSpec {
                cluster: None,
                id: b.id,
                name: b.id.to_string(),
                last_incarnation: None,
                incarnation: Incarnation(1),
                lanes: vec![LanePosition { lane: b.id, segment: 0, group: 0 }],
                found_loss: false,
            }));
            quorum.own(Command::OpenSession(spec(b.id, MemberRole::Bookie)));
        }
        quorum.own(Command::Tick { wall_ms: NOW_MS, jump: true });
        let mut config = PartitionLogConfig::with_memory(64 << 20);
        f(&mut config);
        let mut cluster = Self {
            quorum,
            network: Arc::new(Network { bookies }),
            partition: PartitionId { topic: tidemill_types::TopicId(0), index: 0 },
            config,
            clock: ManualClock::new(NOW_MS),
        };
        let admin = cluster.broker(1_000);
        let create = Command::CreateTopic {
            name: TopicName::new("t").unwrap(),
            partitions: 1,
            config: TopicConfig {
                replication: Replication { copies: 3, ack_quorum: 2 },
                ..TopicConfig::default()
            },
        };
        let Ok(Reply::Topic(topic)) = admin.meta.send(create) else { panic!("topic") };
        cluster.partition.topic = topic.id;
        cluster
    }

    /// A broker in a new session.
    pub(crate) fn broker(&self, n: u128) -> Broker {
        let Reply::Session { session, .. } =
            self.quorum.own(Command::OpenSession(spec(id(n), MemberRole::Broker)))
        else {
            panic!("session")
        };
        let meta = Client::new(self.quorum.clone(), session);
        let ledgers =
            LedgerClient::with_transport(meta.clone(), self.network.clone(), LedgerConfig::new(CLUSTER));
        let ctx =
            LogContext::new(ledgers, meta.clone(), self.clock.clone(), meta.clone(), self.config.clone());
        Broker { id: id(n), meta, ctx, clock: self.clock.clone() }
    }

    /// The partition goes to this broker; the old owner must have released it, or is expired now without hearing of it.
    pub(crate) fn own(&self, b: &Broker) -> Arc<PartitionLog> {
        let old = self.quorum.view(self.partition).partition.owner;
        if let Some(o) = old.filter(|o| o.session != b.meta.session) {
            self.quorum.own(Command::ExpireSession { session: o.session, member: o.broker });
        }
        self.quorum.own(Command::Assign(vec![Assignment { partition: self.partition, broker: Some(b.id) }]));
        let seen = self.quorum.view(self.partition).partition.epoch;
        let acquire = Command::Acquire(vec![AcquireItem { partition: self.partition, seen }]);
        let Ok(Reply::Acquired(each)) = b.meta.send(acquire) else { panic!("acquire") };
        let epoch = each[0].as_ref().unwrap().epoch;
        let config =
            TopicConfig { replication: Replication { copies: 3, ack_quorum: 2 }, ..Default::default() };
        PartitionLog::open(b.ctx.clone(), self.quorum.view(self.partition), epoch, Arc::new(config))
    }

    /// As [`Cluster::own`], and serves.
    pub(crate) async fn serve(&self, b: &Broker) -> Arc<PartitionLog> {
        let log = self.own(b);
        assert_eq!(log.ready().await, LogState::Serving);
        log
    }

    pub(crate) fn hold_adds(&self, hold: bool) {
        for b in &self.network.bookies {
            b.hold_adds(hold);
        }
    }

    /// Everything in the log, read by offset: `(offset, value)`.
    pub(crate) async fn dump(&self, log: &Arc<PartitionLog>) -> Vec<(i64, String)> {
        let mut out = Vec::new();
        let mut at = log.log_start();
        while at < log.high_watermark() {
            let r = log.read(at, 1).await.unwrap();
            assert!(r.next_offset > at);
            for b in r.batches {
                for record in tidemill_record::records(&b.bytes, &Limits::DEFAULT).unwrap() {
                    let record = record.unwrap();
                    let offset = b.base_offset.0 + i64::from(record.offset_delta);
                    if offset >= at.0 {
                        out.push((offset, String::from_utf8(record.value.unwrap().to_vec()).unwrap()));
                    }
                }
            }
            at = r.next_offset;
        }
        out
    }
}

impl Broker {
    /// The maintenance tick after this time.
    pub(crate) fn tick(&self, log: &Arc<PartitionLog>, after: Duration) {
        self.clock.advance(after);
        log.maintain(self.clock.boottime());
    }
}

/// One batch of these values, timestamps from `ts` on.
pub(crate) fn batch_at(values: &[&str], producer: Option<(i64, i16, i32)>, ts: i64) -> Batch {
    let mut b = BatchBuilder::new(Limits::DEFAULT);
    for (n, v) in values.iter().enumerate() {
        b.append(ts + i64::try_from(n).unwrap(), None, Some(v.as_bytes()), &[]).unwrap();
    }
    let producer = producer.map(|(id, epoch, base_sequence)| ProducerFields { id, epoch, base_sequence });
    let bytes = b.finish(Compression::None, producer).unwrap();
    let header = check(&bytes, &Limits::DEFAULT).unwrap();
    Batch { header, bytes }
}

pub(crate) fn batch(values: &[&str], producer: Option<(i64, i16, i32)>) -> Batch {
    batch_at(values, producer, NOW_MS)
}

/// Hands one batch in; the order of calls is the order of offsets.
pub(crate) async fn submit(log: &Arc<PartitionLog>, b: Batch) -> ProduceHandle {
    let r = log.reserve(b.bytes.len()).await.unwrap();
    log.submit(vec![b], r)
}

pub(crate) async fn produce(log: &Arc<PartitionLog>, value: &str) -> Offset {
    log.produce(vec![batch(&[value], None)]).await.unwrap().base_offset
}

/// Lets every task run until all of them wait for time or for each other.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}
