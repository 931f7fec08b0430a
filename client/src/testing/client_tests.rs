//! Topology and offsets.

use std::sync::Arc;

use futures::future::join_all;
use tidemill_types::ErrorCode;

use super::Cluster;
use crate::{At, Client, ClientConfig, OffsetQuery};

#[tokio::test]
async fn many_who_ask_make_few_questions() {
    let cluster = Cluster::start(2, 4, 1).await;
    let client = cluster.client().await;
    let before = cluster.world.lock().describes;
    let answers = join_all((0..50).map(|_| client.partitions("t"))).await;
    assert!(answers.into_iter().all(|n| n.unwrap() == 4));
    assert_eq!(cluster.world.lock().describes, before + 1);
    assert_eq!(client.partitions("none").await.unwrap_err().code, Some(ErrorCode::UnknownTopic));
}

#[tokio::test]
async fn offsets_follow_the_owner() {
    let cluster = Cluster::start(2, 2, 1).await;
    let client = cluster.client().await;
    let query = |partition, at| OffsetQuery { topic: Arc::from("t"), partition, at };
    client.partitions("t").await.unwrap();
    {
        let mut world = cluster.world.lock();
        world.move_away("t", 0);
        world.partition("t", 0).unwrap().end = 9;
        world.partition("t", 0).unwrap().log_start = 3;
    }
    let queries =
        [query(1, At::Latest), query(0, At::Latest), query(0, At::Earliest), query(0, At::Timestamp(1))];
    let found = client.list_offsets(&queries[..2]).await.unwrap();
    assert_eq!(found.iter().map(|f| f.offset).collect::<Vec<_>>(), [Some(0), Some(9)]);
    let found = client.list_offsets(&queries[2..3]).await.unwrap();
    assert_eq!(found[0].offset, Some(3));
    assert_eq!(client.list_offsets(&queries[3..]).await.unwrap()[0].offset, None);
    let far = client.list_offsets(&[query(7, At::Latest)]).await.unwrap_err();
    assert_eq!(far.code, Some(ErrorCode::UnknownPartition));
}

#[tokio::test]
async fn connecting_to_nobody_ends_at_the_deadline() {
    let unused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = unused.local_addr().unwrap().to_string();
    drop(unused);
    let timeout = std::time::Duration::from_millis(50);
    let e = Client::connect(ClientConfig { timeout, ..ClientConfig::new([address]) }).await.unwrap_err();
    assert_eq!(e.code, Some(ErrorCode::DeadlineExceeded));
    let none = Client::connect(ClientConfig::new(Vec::<String>::new())).await.unwrap_err();
    assert_eq!(none.code, Some(ErrorCode::InvalidArgument));
}
