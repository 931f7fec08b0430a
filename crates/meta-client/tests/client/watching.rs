//! The mirror: follows, and resumes where it was.

use std::sync::Arc;

use tidemill_meta_client::ViewEvent;
use tidemill_types::{Revision, TopicConfig, TopicName};

use crate::member::{broker, client, serve};

#[tokio::test]
async fn a_watch_that_broke_off_resumes_by_revision() {
    let (member, addr) = serve().await;
    let client = client(&[addr.to_string()]);
    let session = client.open_session(broker(1), Arc::new(Default::default)).await.unwrap();
    let mirror = client.view();
    let mut events = mirror.events();
    mirror.at_least(Revision(0)).await;
    let [a, b] = ["a", "b"].map(|n| TopicName::new(n).unwrap());
    session.create_topic(a.clone(), 3, TopicConfig::default()).await.unwrap().unwrap();
    let at = Revision(member.inner.lock().unwrap().revision);
    mirror.at_least(at).await;
    let topic = mirror.table().topic_by_name(&a).cloned().unwrap();
    assert_eq!(mirror.table().partitions_of(topic.id).count(), 3);
    member.inner.lock().unwrap().cut_watches();
    session.create_topic(b.clone(), 1, TopicConfig::default()).await.unwrap().unwrap();
    mirror.at_least(Revision(at.0 + 1)).await;
    assert!(mirror.table().topic_by_name(&b).is_some());
    assert_eq!(member.inner.lock().unwrap().watches, [0, at.0], "one view, then from where it was");
    let mut seen = Vec::new();
    while seen.last() != Some(&(at.0 + 1)) {
        match events.next().await.unwrap() {
            ViewEvent::Reload => seen.push(0),
            ViewEvent::Changes(w) => seen.push(w.revision.0),
        }
    }
    assert_eq!(seen, [0, at.0, at.0 + 1], "every change once, in order");
}
