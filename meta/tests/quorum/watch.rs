//! Watches resume at another member, or are told to load anew.

use tidemill_proto::meta::{WatchEvent, WatchRequest, watch_event::Event};
use tidemill_types::{
    TopicConfig, TopicName,
    meta::{Change, MetaView},
};
use tonic::Streaming;

use crate::common::{Client, Member, PATIENCE, Three, cluster, stub};

async fn watch(address: &str, from_revision: u64) -> Streaming<WatchEvent> {
    let request = WatchRequest { cluster: Vec::new(), from_revision, topics_only: false };
    stub(address).watch(request).await.unwrap().into_inner()
}

async fn next(events: &mut Streaming<WatchEvent>) -> WatchEvent {
    tokio::time::timeout(PATIENCE, events.message()).await.unwrap().unwrap().unwrap()
}

async fn view(events: &mut Streaming<WatchEvent>) -> MetaView {
    let mut all = MetaView::default();
    loop {
        let event = next(events).await;
        let Some(Event::View(bytes)) = event.event else { panic!("{event:?}") };
        let piece = tidemill_metadata::codec::decode_view(&bytes).unwrap();
        all.revision = piece.revision;
        all.topics.extend(piece.topics);
        all.partitions.extend(piece.partitions);
        if !event.more {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resumes_at_another_member_without_a_gap() {
    let three = Three::start().await;
    let session = three.client.broker(1).await;
    let name = |i: u32| TopicName::new(&format!("t{i}")).unwrap();
    for i in 0..3 {
        session.create_topic(name(i), 2, TopicConfig::default()).await.unwrap().unwrap();
    }
    let seen = view(&mut watch(&three.members[0].address(), 0).await).await;
    for i in 3..8 {
        session.create_topic(name(i), 2, TopicConfig::default()).await.unwrap().unwrap();
    }
    for other in [1, 2] {
        let mut events = watch(&three.members[other].address(), seen.revision.0).await;
        let mut topics: Vec<_> = seen.topics.iter().map(|t| t.name.clone()).collect();
        let mut last = seen.revision;
        while topics.len() < 8 {
            match next(&mut events).await.event {
                Some(Event::Changes(bytes)) => {
                    let w = tidemill_metadata::decode_watched(&bytes).unwrap();
                    assert!(w.revision > last, "in order, nothing twice");
                    last = w.revision;
                    topics.extend(w.changes.into_iter().filter_map(|c| match c {
                        Change::Topic(t) => Some(t.name),
                        _ => None,
                    }));
                }
                Some(Event::AtRevision(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(topics, (0..8).map(name).collect::<Vec<_>>());
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_behind_the_watcher_does_not_serve_it() {
    let three = Three::start().await;
    let mut events = watch(&three.members[0].address(), 1_000_000).await;
    let refused = tokio::time::timeout(PATIENCE, events.message()).await.unwrap().unwrap_err();
    assert!(refused.message().contains("behind revision 1000000"), "{refused}");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_knows_nothing_says_nothing() {
    let mut member = Member::start(|_| {}).await;
    let address = member.address();
    let mut events = watch(&address, 0).await;
    let refused = tokio::time::timeout(PATIENCE, events.message()).await.unwrap().unwrap_err();
    assert!(refused.message().contains("no cluster yet"), "{refused}");
    // A watch that waits is served when there is something to say.
    let mut events = watch(&address, 0).await;
    Client::new(vec![address.clone()]).meta.initialize(cluster(), &[address]).await.unwrap();
    let first = next(&mut events).await;
    let Some(Event::View(bytes)) = first.event else { panic!("{first:?}") };
    let view = tidemill_metadata::codec::decode_view(&bytes).unwrap();
    assert_eq!(view.cluster, Some(cluster()));
    member.stop().await;
}
