//! A quorum of one.

use std::sync::Arc;

use tidemill_meta::MetaConfig;
use tidemill_meta_client::MetaError;
use tidemill_runtime::{
    Health, Metrics, Supervisor, SystemClock,
    io::{CrashPlan, Fault, OpKind, SimDisk},
};
use tidemill_types::{
    BookieState, MemberId, PartitionId, RequestId, SessionId, TopicConfig, TopicName,
    meta::{Answer, Command, Query, Rejection, Request},
};

use crate::common::{Client, Member, cluster, until};

#[tokio::test(flavor = "multi_thread")]
async fn starts_serves_and_finds_everything_again() {
    let mut member = Member::start(|c| c.rebalance_after_ms = 100).await;
    let client = Client::new(vec![member.address()]);
    let status = client.meta.status_of(&member.address()).await.unwrap();
    assert_eq!((status.role.as_str(), status.cluster), ("uninitialized", None));
    client.meta.initialize(cluster(), &[member.address()]).await.unwrap();
    client.meta.initialize(cluster(), &[member.address()]).await.unwrap();
    member.sup.health().ready().await;

    let session = client.broker(1).await;
    assert!(session.is_valid_now());
    let name = TopicName::new("orders").unwrap();
    let topic = session.create_topic(name.clone(), 4, TopicConfig::default()).await.unwrap().unwrap();
    let mirror = client.meta.view();
    let owned_by = |id| {
        let table = mirror.table();
        (0..4)
            .filter(|index| {
                table
                    .partition(PartitionId { topic: topic.id, index: *index })
                    .is_some_and(|p| p.assigned == Some(id))
            })
            .count()
    };
    until("the planner assigns what is new to the only broker", || async {
        (owned_by(session.member()) == 4).then_some(())
    })
    .await;
    let other = client.broker(2).await;
    until("the second broker gets its share", || async { (owned_by(other.member()) == 2).then_some(()) })
        .await;
    other.close().await.unwrap();
    until("the first one gets it back", || async { (owned_by(session.member()) == 4).then_some(()) }).await;
    until("quorum time was told", || async {
        session.quorum_time().filter(|t| t.wall_ms > 1_700_000_000_000)
    })
    .await;

    member.stop().await;
    member.start_again().await.unwrap();
    let (answer, _) = client.meta.read(&Query::TopicByName(name)).await.unwrap();
    assert_eq!(answer, Answer::Topic(Some(topic)));
    assert_eq!(session.is_lost(), None, "a restart of the leader gives every session a full TTL");
    let status = client.meta.status_of(&member.address()).await.unwrap();
    assert_eq!(status.cluster, Some(cluster()));
    assert!(member.metrics.encode().contains("tidemill_meta_term{member=\"meta-0\"}"));
    session.close().await.unwrap();
    client.sup.stop().await;
    member.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_folder_is_refused() {
    let member = Member::start(|_| {}).await;
    let mut config = member.config();
    config.listen = "127.0.0.1:0".parse().unwrap();
    let e = tidemill_meta::start(config, &member.sup, &member.metrics).await.unwrap_err();
    assert!(e.to_string().contains("in use by another process"), "{e}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_leader_are_not_taken_from_outside() {
    let mut member = Member::start(|_| {}).await;
    let client = Client::new(vec![member.address()]);
    client.meta.initialize(cluster(), &[member.address()]).await.unwrap();
    let member_id = MemberId(uuid::Uuid::from_u128(9));
    for command in [
        Command::Tick { wall_ms: 1, jump: false },
        Command::Init { cluster: cluster() },
        Command::Assign(Vec::new()),
        Command::DeleteTopic { topic: tidemill_types::TopicId(1) },
        Command::SetMemberState { member: member_id, state: BookieState::Lost, restarting: false },
        Command::SetMemberState { member: member_id, state: BookieState::Draining, restarting: true },
    ] {
        let request = Request { session: SessionId::NONE, request: RequestId(1), command };
        let e = client.meta.propose_request(&request).await.unwrap_err();
        assert!(matches!(e, MetaError::Refused { .. }), "{e}");
    }
    // An operator's wish is judged by the state machine: there is no such member.
    let command =
        Command::SetMemberState { member: member_id, state: BookieState::Draining, restarting: false };
    let request = Request { session: SessionId::NONE, request: RequestId(1), command };
    let answer = client.meta.propose_request(&request).await.unwrap();
    assert!(matches!(answer, Err(Rejection::NotFound { .. })), "{answer:?}");
    client.sup.stop().await;
    member.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_refuses_a_sync_ends_the_member() {
    let disk = Arc::new(SimDisk::new(1, 1 << 30));
    let config = MetaConfig {
        data_dir: "/meta".into(),
        listen: "127.0.0.1:0".parse().unwrap(),
        ..MetaConfig::default()
    };
    let sup = Supervisor::new(Health::new());
    let metrics = Metrics::new();
    let handle = tidemill_meta::start_on(disk.clone(), Arc::new(SystemClock), config.clone(), &sup, &metrics)
        .await
        .unwrap();
    let address = handle.addr().to_string();
    let client = Client::new(vec![address.clone()]);
    client.meta.initialize(cluster(), &[address]).await.unwrap();
    let session = client.broker(1).await;
    let name = TopicName::new("acknowledged").unwrap();
    session.create_topic(name.clone(), 1, TopicConfig::default()).await.unwrap().unwrap();
    disk.inject(Fault { kind: OpKind::Sync, after: 0, error: std::io::ErrorKind::Other });
    let lost = session.create_topic(TopicName::new("lost").unwrap(), 1, TopicConfig::default());
    tokio::select! {
        answer = lost => panic!("{answer:?}"),
        () = sup.token().cancelled() => {}
    }
    assert!(sup.fatal_reason().unwrap().contains("raft log cannot be written"), "{:?}", sup.fatal_reason());
    handle.stop().await;
    client.sup.stop().await;

    disk.crash(CrashPlan::LoseAll);
    let sup = Supervisor::new(Health::new());
    let handle =
        tidemill_meta::start_on(disk, Arc::new(SystemClock), config, &sup, &Metrics::new()).await.unwrap();
    let client = Client::new(vec![handle.addr().to_string()]);
    let (answer, _) = client.meta.read(&Query::TopicByName(name)).await.unwrap();
    assert!(matches!(answer, Answer::Topic(Some(_))), "{answer:?}");
    client.sup.stop().await;
    handle.stop().await;
}
