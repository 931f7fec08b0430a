//! Sessions: kept over a change of the leader, ended when nobody renews them.

use std::sync::Arc;

use tidemill_meta_client::{MetaClient, RenewalReport};
use tidemill_types::{
    Incarnation, LanePosition, MemberId, MemberRole,
    meta::{Answer, BookieSpec, MemberSpec, Query},
};
use uuid::Uuid;

use crate::common::{Client, Member, Three, broker, cluster, until};

async fn member(meta: &MetaClient, id: MemberId) -> tidemill_types::Member {
    let (Answer::Members(all), _) = meta.read(&Query::Members).await.unwrap() else { panic!("members") };
    all.into_iter().find(|m| m.id == id).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_ones_survive_leaders_and_silent_ones_end() {
    let mut three = Three::start().await;
    let addresses: Vec<String> = three.members.iter().map(Member::address).collect();
    let kept = three.client.broker(1).await;
    for crash in [true, false] {
        let leader = three.leader().await;
        if crash {
            three.members[leader].crash().await;
        } else {
            three.members[leader].stop().await;
        }
        // A renewal is answered by the next leader.
        until("the session is valid under the next leader", || async {
            let next = three.leader().await;
            (next != leader && kept.is_valid_now()).then_some(())
        })
        .await;
        three.members[leader].start_again().await.unwrap();
    }
    assert_eq!(kept.is_lost(), None);

    let silent = Client::new(addresses);
    let session = silent.broker(2).await;
    silent.sup.stop().await;
    assert_eq!(member(&three.client.meta, session.member()).await.session, Some(session.id()));
    until("a session without renewals ends", || async {
        member(&three.client.meta, session.member()).await.session.is_none().then_some(())
    })
    .await;
    assert_eq!(member(&three.client.meta, kept.member()).await.session, Some(kept.id()));
    assert_eq!(kept.is_lost(), None);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_bookie_tells_is_replicated() {
    let mut member_ = Member::start(|_| {}).await;
    let client = Client::new(vec![member_.address()]);
    client.meta.initialize(cluster(), &[member_.address()]).await.unwrap();
    let id = MemberId(Uuid::from_u128(77));
    let lane = LanePosition { lane: MemberId(Uuid::from_u128(78)), segment: 1, group: 5 };
    let spec = BookieSpec {
        cluster: None,
        id,
        name: "bookie-0".into(),
        last_incarnation: None,
        incarnation: Incarnation(9),
        lanes: vec![lane],
        found_loss: false,
    };
    let boot = client.meta.bookie_boot(spec).await.unwrap();
    let spec = MemberSpec {
        cluster: Some(boot.cluster),
        id,
        role: MemberRole::Bookie,
        name: "bookie-0".into(),
        incarnation: Incarnation(9),
        ..broker(1)
    };
    let now = LanePosition { group: 8, ..lane };
    let report = RenewalReport { positions: vec![now], free_bytes: 1 << 30, ..RenewalReport::default() };
    let _session = client.meta.open_session(spec, Arc::new(move || report.clone())).await.unwrap();
    until("the position of a renewal is in the quorum", || async {
        let m = member(&client.meta, id).await;
        (m.lanes == [now] && m.free_bytes == 1 << 30).then_some(())
    })
    .await;
    client.sup.stop().await;
    member_.stop().await;
}
