//! Growing, replacing, snapshots, addresses.

use tidemill_meta_client::{MemberChange, MetaError};
use tidemill_proto::meta::{
    ChangeMembersRequest, Voter, WatchRequest, change_members_request::Change, watch_event::Event,
};
use tidemill_types::{
    TopicConfig, TopicName,
    meta::{Answer, Query},
};

use crate::common::{Client, Member, Three, caught_up, cluster, stub, until};

async fn voters(client: &Client, address: &str) -> usize {
    client.meta.status_of(address).await.unwrap().voters.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn grows_from_one_by_snapshot_and_loses_the_first() {
    let mut first = Member::start(|c| c.snapshot_every = 100).await;
    let client = Client::new(vec![first.address()]);
    client.meta.initialize(cluster(), &[first.address()]).await.unwrap();
    let session = client.broker(1).await;
    for i in 0..250 {
        let name = TopicName::new(&format!("t{i}")).unwrap();
        session.create_topic(name, 1, TopicConfig::default()).await.unwrap().unwrap();
    }
    until("a snapshot", || async {
        client
            .meta
            .status_of(&first.address())
            .await
            .ok()
            .filter(|s| s.snapshot > 150 && s.snapshot_bytes > 0)
    })
    .await;

    let mut second = Member::start(|c| c.snapshot_every = 100).await;
    let mut third = Member::start(|c| c.snapshot_every = 100).await;
    for m in [&second, &third] {
        client.meta.change_members(&MemberChange::Add(m.address())).await.unwrap();
        client.meta.change_members(&MemberChange::Add(m.address())).await.unwrap();
    }
    assert_eq!(voters(&client, &first.address()).await, 3);
    caught_up(&client, &second.address(), &first.address()).await;
    let status = client.meta.status_of(&second.address()).await.unwrap();
    assert!(status.snapshot >= 100, "it came by a snapshot: {status:?}");
    assert_eq!(status.cluster, Some(cluster()));

    // Its ring begins at the snapshot: a watcher of before has to load anew.
    let mut stub = stub(&second.address());
    let request = WatchRequest { cluster: Vec::new(), from_revision: 2, topics_only: true };
    let event = stub.watch(request).await.unwrap().into_inner().message().await.unwrap().unwrap();
    assert!(matches!(event.event, Some(Event::View(_))), "{event:?}");

    let gone = client.meta.status_of(&first.address()).await.unwrap().node;
    client.meta.change_members(&MemberChange::Remove(gone)).await.unwrap();
    first.stop().await;
    let rest = Client::new(vec![second.address(), third.address()]);
    let (answer, _) = rest.meta.read(&Query::Topics { after: None, limit: 10_000 }).await.unwrap();
    let Answer::Topics(topics) = answer else { panic!("{answer:?}") };
    assert_eq!(topics.len(), 250);

    // What was removed keeps its old state and is not taken back with it.
    first.start_again().await.unwrap();
    let e = rest.meta.change_members(&MemberChange::Add(first.address())).await.unwrap_err();
    assert!(matches!(&e, MetaError::Refused { why, .. } if why.contains("not empty")), "{e}");

    for m in [&mut second, &mut third] {
        m.stop().await;
        m.start_again().await.unwrap();
    }
    let (answer, _) = rest.meta.read(&Query::Topics { after: None, limit: 10_000 }).await.unwrap();
    assert_eq!(answer, Answer::Topics(topics));
    client.sup.stop().await;
    rest.sup.stop().await;
    for m in [&mut first, &mut second, &mut third] {
        m.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_not_empty_stops_an_initialisation() {
    let mut used = Member::start(|_| {}).await;
    let mut empty = [Member::start(|_| {}).await, Member::start(|_| {}).await];
    let client = Client::new(vec![used.address()]);
    client.meta.initialize(cluster(), &[used.address()]).await.unwrap();
    let other = Client::new(vec![empty[0].address()]);
    let all = [empty[0].address(), empty[1].address(), used.address()];
    let id = tidemill_types::ClusterId(uuid::Uuid::from_u128(0xC2));
    let e = other.meta.initialize(id, &all).await.unwrap_err();
    assert!(matches!(&e, MetaError::Refused { why, .. } if why.contains("not empty")), "{e}");
    assert_eq!(other.meta.status_of(&empty[0].address()).await.unwrap().role, "uninitialized");
    let e = client.meta.initialize(id, &[used.address()]).await.unwrap_err();
    assert!(matches!(e, MetaError::WrongCluster { .. }), "{e}");
    used.stop().await;
    for m in &mut empty {
        m.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_whose_addresses_all_changed_find_each_other_again() {
    let mut three = Three::start().await;
    let session = three.client.broker(1).await;
    let name = TopicName::new("kept").unwrap();
    session.create_topic(name.clone(), 1, TopicConfig::default()).await.unwrap().unwrap();
    three.client.sup.stop().await;
    for m in &mut three.members {
        m.stop().await;
    }
    for m in &mut three.members {
        m.addr = "127.0.0.1:0".parse().unwrap();
        m.start_again().await.unwrap();
    }
    three.client = Client::new(three.members.iter().map(Member::address).collect());
    let mut nodes = Vec::new();
    for m in &three.members {
        nodes.push((three.client.meta.status_of(&m.address()).await.unwrap().node, m.address()));
    }
    for (_, asked) in &nodes {
        for (node, address) in nodes.iter().filter(|(_, a)| a != asked) {
            let voter = Voter { node: *node, address: address.clone(), member: Vec::new() };
            let change = Some(Change::Readdress(voter));
            // Whether it leads by now or not: it noted the address.
            let _answer =
                stub(asked).change_members(ChangeMembersRequest { cluster: Vec::new(), change }).await;
        }
    }
    let (answer, _) = three.client.meta.read(&Query::TopicByName(name)).await.unwrap();
    assert!(matches!(answer, Answer::Topic(Some(_))), "{answer:?}");
    for (node, address) in &nodes {
        let change = MemberChange::Readdress { node: *node, address: address.clone() };
        three.client.meta.change_members(&change).await.unwrap();
    }
    let status = three.client.meta.status_of(&nodes[0].1).await.unwrap();
    let mut known: Vec<_> = status.voters.into_iter().map(|v| (v.node, v.address)).collect();
    known.sort();
    nodes.sort();
    assert_eq!(known, nodes);
    three.stop().await;
}

/// One to five, one step at a time, while commands go on; then the last three are replaced by two fresh ones, one by one.
#[tokio::test(flavor = "multi_thread")]
async fn grows_to_five_under_load_and_survives_two() {
    let mut members = vec![Member::start(|_| {}).await];
    let client = Client::new(vec![members[0].address()]);
    client.meta.initialize(cluster(), &[members[0].address()]).await.unwrap();
    let session = client.broker(1).await;
    let load = {
        let session = session.clone();
        tokio::spawn(async move {
            let mut done = 0u32;
            while let Ok(Ok(_)) = session.allocate_producer_ids(1).await {
                done += 1;
            }
            done
        })
    };
    for wanted in 2..=5 {
        let m = Member::start(|_| {}).await;
        client.meta.change_members(&MemberChange::Add(m.address())).await.unwrap();
        members.push(m);
        let status = client.meta.status_of(&members[0].address()).await.unwrap();
        assert_eq!(status.voters.len(), wanted);
    }
    for m in &members[1..] {
        caught_up(&client, &m.address(), &members[0].address()).await;
    }
    // Two of five go without a word: the rest commits on.
    let mut gone = Vec::new();
    for _ in 0..2 {
        let mut m = members.pop().unwrap();
        gone.push(client.meta.status_of(&m.address()).await.unwrap().node);
        m.crash().await;
    }
    let name = TopicName::new("after").unwrap();
    session.create_topic(name, 1, TopicConfig::default()).await.unwrap().unwrap();
    // Of the four that would stay without a live one only two answer: refused, the dead ones leave first.
    let live = client.meta.status_of(&members[0].address()).await.unwrap().node;
    let e = client.meta.change_members(&MemberChange::Remove(live)).await.unwrap_err();
    assert!(matches!(&e, MetaError::Refused { why, .. } if why.contains("2 answer")), "{e}");
    for node in gone {
        client.meta.change_members(&MemberChange::Remove(node)).await.unwrap();
    }
    let fresh = Member::start(|_| {}).await;
    client.meta.change_members(&MemberChange::Add(fresh.address())).await.unwrap();
    members.push(fresh);
    let status = client.meta.status_of(&members[0].address()).await.unwrap();
    assert_eq!(status.voters.len(), 4);
    assert!(!load.is_finished(), "commands went on all the time");
    client.sup.stop().await;
    assert!(load.await.unwrap() > 0);
    for m in &mut members {
        m.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_cluster_has_the_level_of_its_voters_and_no_more_is_taken() {
    let three = Three::start().await;
    let f = three.client.meta.raise_feature_level(0, true).await.unwrap();
    assert_eq!((f.level, f.highest), (tidemill_metadata::FEATURE_LEVEL, tidemill_metadata::FEATURE_LEVEL));
    let e = three.client.meta.raise_feature_level(f.highest + 1, false).await.unwrap_err();
    assert!(matches!(&e, MetaError::Refused { why, .. } if why.contains("not known to every voter")), "{e}");
    let e = three.client.meta.raise_feature_level(1, false).await.unwrap_err();
    assert!(matches!(&e, MetaError::Refused { why, .. } if why.contains("never goes down")), "{e}");
    assert_eq!(three.client.meta.raise_feature_level(0, false).await.unwrap().level, f.level);
    three.stop().await;
}

/// Quorum time here runs in ticks of 20 ms, and two of them 60 ms apart are enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_tombstone_is_purged_by_the_leader_and_watchers_hear_of_all_of_it() {
    use tidemill_meta_client::TopicsEvent;
    use tidemill_types::{
        Revision,
        meta::{Adoption, Change as Changed, ControlAction, ControlCommand, TopicDeletion, TopicWish},
    };
    let mut m = Member::start(|c| {
        c.tick_ms = 20;
        c.purge_wait_ms = 60;
    })
    .await;
    let client = Client::new(vec![m.address()]);
    client.meta.initialize(cluster(), &[m.address()]).await.unwrap();
    let _session = client.broker(1).await;
    let control =
        async |action| client.meta.control(ControlCommand { epoch: None, action }).await.unwrap().unwrap();
    let wish = |name: &str| TopicWish {
        name: TopicName::new(name).unwrap(),
        partitions: 1,
        config: TopicConfig::default(),
        claim: None,
        adoption: Adoption::Fail,
    };
    control(ControlAction::ApplyTopics(vec![wish("short"), wish("long")])).await;
    let mirror = client.meta.view();
    mirror.at_least(Revision(0)).await;
    let mut events = client.meta.watch_topics(Revision(0)).await.unwrap();
    let mut next =
        async || tokio::time::timeout(crate::common::PATIENCE, events.next()).await.unwrap().unwrap();
    assert_eq!(next().await, TopicsEvent::Reload);
    loop {
        if let TopicsEvent::Synced(_) = next().await {
            break;
        }
    }
    let deletion = |name: &str, purge_after_ms| TopicDeletion {
        name: TopicName::new(name).unwrap(),
        uid: None,
        purge_after_ms,
    };
    until("quorum time", || async { (mirror.table().wall_ms() > 0).then_some(()) }).await;
    control(ControlAction::TombstoneTopics(vec![deletion("short", 100), deletion("long", 1 << 36)])).await;
    let (mut tombstones, mut removed) = (0, 0);
    while removed == 0 {
        let TopicsEvent::Changes(watched) = next().await else { continue };
        for c in watched.changes {
            match c {
                Changed::TopicControl(c) => tombstones += usize::from(c.tombstone.is_some()),
                Changed::TopicRemoved(_) => removed += 1,
                Changed::Topic(_) => {}
                other => panic!("not about topics: {other:?}"),
            }
        }
    }
    assert_eq!((tombstones, removed), (2, 1));
    let long = until("the mirror", || async {
        let t = mirror.table();
        let gone = t.topic_by_name(&TopicName::new("short").unwrap()).is_none();
        let long = t.topic_by_name(&TopicName::new("long").unwrap()).map(|t| t.id);
        long.filter(|_| gone)
    })
    .await;
    assert!(mirror.table().is_tombstone(long), "its time has not come");
    // Whoever begins now hears of the tombstone with the view.
    let mut fresh = client.meta.watch_topics(Revision(0)).await.unwrap();
    let controls = loop {
        match fresh.next().await.unwrap() {
            TopicsEvent::Piece { controls, .. } if !controls.is_empty() => break controls,
            TopicsEvent::Synced(_) => panic!("no controls in the view"),
            _ => {}
        }
    };
    assert!(controls.iter().any(|c| c.topic == long && c.tombstone.is_some()));
    client.sup.stop().await;
    m.stop().await;
}
