//! Boot, identity, and who is refused (R15, R16, R26).

use tidemill_proto::{
    bookie::{Code, FenceRequest, PingRequest, ReadRequest},
    convert,
};
use tidemill_types::{BookieState, ClusterId, Incarnation, LedgerId, meta::Command};
use uuid::Uuid;

use crate::{
    broker::Broker,
    calls::{Adds, read_codes},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
    wait::until,
};

async fn ping(bookie: &Bookie, identity: tidemill_proto::bookie::Identity) -> Code {
    let request = PingRequest { identity: Some(identity) };
    bookie.control.clone().ping(request).await.unwrap().into_inner().code()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_the_identity_and_the_data() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(2));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 0, b"kept").await, Code::Ok);
    let (id, incarnation) = (bookie.id(), bookie.incarnation().await);
    bookie.stop().await;

    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!(bookie.id(), id);
    assert_ne!(bookie.incarnation().await, incarnation);
    assert_eq!(bookie.state().await, "rw");
    assert_eq!(read_codes(&bookie, ledger, 0, 0).await, [Code::Ok]);
    // The old incarnation in a broker's table (R26).
    assert_eq!(ping(&bookie, convert::identity(quorum.cluster, id, incarnation)).await, Code::WrongIdentity);
    assert_eq!(ping(&bookie, convert::identity(quorum.cluster, id, Incarnation(0))).await, Code::Ok);
    let member = quorum.look(|s| s.member(id).unwrap().clone());
    assert_eq!((member.state, member.limbo_count, member.restarting), (BookieState::Rw, 0, false));
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(ledger, 1, b"more").await, Code::Ok, "a held ledger goes on");
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_means_somebody_else_gets_no_answer_that_counts() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let incarnation = bookie.incarnation().await;
    let stranger = tidemill_types::MemberId(Uuid::new_v4());
    let wrong = [
        convert::identity(ClusterId(Uuid::new_v4()), bookie.id(), incarnation),
        convert::identity(quorum.cluster, stranger, incarnation),
        convert::identity(quorum.cluster, bookie.id(), Incarnation(incarnation.0 ^ 1)),
    ];
    for identity in wrong {
        assert_eq!(ping(&bookie, identity.clone()).await, Code::WrongIdentity);
        let mut adds = Adds::open(&bookie, identity.clone()).await;
        assert_eq!(adds.hello, bookie.identity().await, "the answer says who is there");
        assert_eq!(adds.add(LedgerId(1), 0, b"x").await, Code::WrongIdentity);
        let request = FenceRequest { identity: Some(identity.clone()), ledgers: vec![1, 2] };
        let results = bookie.control.clone().fence(request).await.unwrap().into_inner().results;
        assert!(results.len() == 2 && results.iter().all(|r| r.code() == Code::WrongIdentity));
        let request = ReadRequest { identity: Some(identity), ledger: 1, ..Default::default() };
        let mut rx = bookie.data.clone().read(request).await.unwrap().into_inner();
        assert_eq!(rx.message().await.unwrap().unwrap().results[0].code(), Code::WrongIdentity);
    }
    assert_eq!(ping(&bookie, Default::default()).await, Code::Invalid);
    assert!(bookie.metric("wrong_identity_total") >= 12.0);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_disk_behind_the_old_address_is_a_stranger() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
    assert_eq!(Adds::to(&bookie).await.add(ledger, 0, b"kept").await, Code::Ok);
    let (old, addr) = (bookie.identity().await, bookie.handle.addr());
    let old_id = bookie.id();
    bookie.stop().await;
    disks.empty(0);

    let same_address = tidemill_bookie::BookieConfig { listen: addr, ..config(&quorum, &disks) };
    let bookie = Bookie::start(same_address).await;
    assert_ne!(bookie.id(), old_id);
    assert_eq!(bookie.state().await, "rw", "a new bookie is no bookie in limbo");
    assert_eq!(ping(&bookie, old.clone()).await, Code::WrongIdentity);
    // It would truthfully say "no such ledger": exactly that must not be heard.
    let request = ReadRequest { identity: Some(old), ledger: ledger.0, ..Default::default() };
    let mut rx = bookie.data.clone().read(request).await.unwrap().into_inner();
    assert_eq!(rx.message().await.unwrap().unwrap().results[0].code(), Code::WrongIdentity);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_waits_for_the_quorum_and_says_so() {
    let (quorum, disks) = (Quorum::uninitialised().await, Disks::new(1));
    let mut bookie = Bookie::try_start(config(&quorum, &disks)).await.unwrap();
    let told = |b: &Bookie| b.sup.health().waiting().into_iter().find(|(k, _)| k == "bookie/bookie-0/quorum");
    let (_, why) = until("the reason", async || told(&bookie)).await;
    assert!(why.starts_with(&format!("waiting for the metadata quorum at {}: ", quorum.addr)), "{why}");
    assert!(why.contains("not initialised"), "{why}");
    assert_eq!(bookie.state().await, "starting");
    assert_eq!(ping(&bookie, bookie.identity().await).await, Code::NotReady);
    let mut adds = Adds::to(&bookie).await;
    assert_eq!(adds.add(LedgerId(1), 0, b"x").await, Code::NotReady);

    quorum.command(Command::Init { cluster: quorum.cluster }).unwrap();
    bookie.serves().await;
    bookie.sup.health().ready().await;
    assert_eq!(ping(&bookie, bookie.identity().await).await, Code::Ok);
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_before_the_quorum_can_be_reached_and_stops_while_it_waits() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    quorum.reachable(false);
    let bookie = Bookie::try_start(config(&quorum, &disks)).await.unwrap();
    bookie.stop().await;
    let mut bookie = Bookie::try_start(config(&quorum, &disks)).await.unwrap();
    until("the reason", async || (bookie.sup.health().waiting().len() == 2).then_some(())).await;
    quorum.reachable(true);
    bookie.serves().await;
    assert_eq!(bookie.state().await, "rw");
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_disks_is_refused() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(2));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let refused = Bookie::try_start(config(&quorum, &disks)).await.err().unwrap();
    assert!(refused.to_string().contains("in use by another process"), "{refused}");
    assert_eq!(bookie.state().await, "rw", "the first one is not disturbed");
    bookie.stop().await;
    Bookie::start(config(&quorum, &disks)).await.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disks_of_another_cluster_are_refused() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let id = bookie.id();
    bookie.stop().await;
    let other = Quorum::start().await;
    let bookie = Bookie::try_start(config(&other, &disks)).await.unwrap();
    let why = bookie.fatal().await;
    assert!(why.contains("WRONG_CLUSTER"), "{why}");
    assert!(other.look(|s| s.member(id).is_none()));
    // Nothing was changed on the disks.
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    assert_eq!((bookie.id(), bookie.state().await.as_str()), (id, "rw"));
    bookie.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_other_peoples_files_is_refused() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    std::fs::write(disks.dirs[0].join("holiday.jpg"), b"x").unwrap();
    let refused = Bookie::try_start(config(&quorum, &disks)).await.err().unwrap().to_string();
    assert!(refused.contains("holiday.jpg"), "{refused}");
    assert!(disks.root().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_uuid_ends_its_process_and_does_not_come_back() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(1));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let member = bookie.id();
    for state in [BookieState::Draining, BookieState::Retired] {
        quorum.command(Command::SetMemberState { member, state, restarting: false }).unwrap();
    }
    let why = bookie.fatal().await;
    assert!(why.contains("retired"), "{why}");
    let why = Bookie::try_start(config(&quorum, &disks)).await.unwrap().fatal().await;
    assert!(why.contains("retired"), "{why}");
}
