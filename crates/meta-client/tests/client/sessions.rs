//! Sessions: valid by renewal, lost when the quorum says so.

use std::sync::Arc;

use tidemill_meta_client::{Lost, MetaError};
use tidemill_types::{
    RequestId, SessionId,
    meta::{Command, Request},
};

use crate::member::{CLUSTER, broker, client, serve};

#[tokio::test]
async fn an_expired_session_is_lost_for_good_and_a_new_one_is_another() {
    let (member, addr) = serve().await;
    let client = client(&[addr.to_string()]);
    let first = client.open_session(broker(1), Arc::new(Default::default)).await.unwrap();
    assert!(first.is_valid_now());
    assert_eq!((first.cluster(), client.cluster()), (CLUSTER, Some(CLUSTER)));
    assert!(first.quorum_time().unwrap().wall_ms >= 1_234);
    let expire = Command::ExpireSession { session: first.id(), member: first.member() };
    let request = Request { session: SessionId::NONE, request: RequestId(0), command: expire };
    member.inner.lock().unwrap().apply(&request).result.unwrap();
    assert_eq!(first.lost().await, Lost::Expired);
    assert!(!first.is_valid_now());
    let e = first.allocate_producer_ids(1).await.unwrap_err();
    assert_eq!(e, MetaError::SessionExpired);
    let second = client.open_session(broker(1), Arc::new(Default::default)).await.unwrap();
    assert_ne!(first.id(), second.id());
    assert!(second.is_valid_now() && !first.is_valid_now());
    assert_eq!(client.session().map(|s| s.id()), Some(second.id()));
}

#[tokio::test]
async fn opening_again_while_it_lives_goes_on_with_its_request_ids() {
    let (_member, addr) = serve().await;
    let client = client(&[addr.to_string()]);
    let first = client.open_session(broker(1), Arc::new(Default::default)).await.unwrap();
    let a = first.allocate_producer_ids(10).await.unwrap().unwrap();
    let again = client.open_session(broker(1), Arc::new(Default::default)).await.unwrap();
    assert_eq!(first.id(), again.id());
    let b = again.allocate_producer_ids(10).await.unwrap().unwrap();
    assert_ne!(a, b, "a used request id would have been answered with the first range");
}

#[tokio::test]
async fn a_closed_session_is_over_at_once() {
    let (member, addr) = serve().await;
    let client = client(&[addr.to_string()]);
    let session = client.open_session(broker(1), Arc::new(Default::default)).await.unwrap();
    session.close().await.unwrap();
    assert_eq!(session.is_lost(), Some(Lost::Closed));
    assert!(!member.inner.lock().unwrap().state.is_live(session.id()));
}
