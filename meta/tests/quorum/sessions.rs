//! Sessions: kept over a change of the leader, ended when nobody renews them.

use tidemill_meta_client::MetaClient;
use tidemill_types::{
    Member, MemberId,
    meta::{Answer, Query},
};

use crate::common::{Client, Three, until};

async fn member(meta: &MetaClient, id: MemberId) -> Member {
    let (Answer::Members(all), _) = meta.read(&Query::Members).await.unwrap() else { panic!("members") };
    all.into_iter().find(|m| m.id == id).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_ones_survive_leaders_and_silent_ones_end() {
    let mut three = Three::start().await;
    let addresses: Vec<String> = three.members.iter().map(|m| m.address()).collect();
    let kept = three.client.broker(1).await;
    for _ in 0..2 {
        let leader = three.leader().await;
        three.members[leader].stop().await;
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
