//! Two brokers: routes, a crash, a return, a drain.

use tidemill_proto::{convert::code_of, v1};
use tidemill_types::ErrorCode;

use crate::harness::{Broker, Cluster, code, eventually, values};

const PARTITIONS: u32 = 4;

fn shared(owners: &[String], a: &Broker, b: &Broker) -> bool {
    let count = |x: &Broker| owners.iter().filter(|o| **o == x.address).count();
    count(a) == 2 && count(b) == 2
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_broker_names_the_right_one() {
    let c = Cluster::start(3).await;
    let (a, b) = (c.broker("broker-a").await, c.broker("broker-b").await);
    a.create("t", PARTITIONS, &[]).await;
    let owners = a.owners_when("t", |o| shared(o, &a, &b)).await;
    for (i, owner) in owners.iter().enumerate() {
        let i = u32::try_from(i).unwrap();
        let (right, wrong) = if *owner == a.address { (&a, &b) } else { (&b, &a) };
        wrong.owners_when("t", |o| o[i as usize] == *owner).await;
        let e = wrong.produce("t", i, &values("v", 1)).await.unwrap_err();
        let (code, details) = code_of(&e).unwrap();
        let epoch: u64 = details["epoch"].parse().unwrap();
        assert_eq!((code, &details["owner"]), (ErrorCode::NotOwner, owner));
        let p = wrong.fetch("t", i, 0, false, 0).await;
        let error = p.error.unwrap();
        assert_eq!((error.code.as_str(), &error.owner, error.epoch), ("NOT_OWNER", owner, epoch));
        assert_eq!(right.produce("t", i, &values("v", 1)).await.unwrap().epoch, epoch);
        // The broker that is not the owner asks it.
        let d = v1::DescribePartitionRequest { topic: "t".into(), partition: i };
        let d = wrong.admin().describe_partition(d).await.unwrap().into_inner();
        assert_eq!((d.state.as_str(), d.high_watermark), ("serving", 1));
        // A client that has heard of a later epoch is not served by an earlier one.
        let p = v1::FetchPartition {
            topic: "t".into(),
            partition: i,
            epoch: epoch + 1,
            ..v1::FetchPartition::default()
        };
        let r = v1::FetchRequest { partitions: vec![p], ..v1::FetchRequest::default() };
        let p = right.consumer().fetch(r).await.unwrap().into_inner().partitions.remove(0);
        assert!(["NOT_OWNER", "NO_OWNER"].contains(&p.error.unwrap().code.as_str()));
    }
    assert!(a.metric("tidemill_broker_not_owner_total") >= 2.0);
    a.stop().await;
    b.stop().await;
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_loses_nothing_and_a_return_gets_its_share() {
    let c = Cluster::start(3).await;
    let (a, b) = (c.broker("broker-a").await, c.broker("broker-b").await);
    a.create("t", PARTITIONS, &[]).await;
    let owners = a.owners_when("t", |o| shared(o, &a, &b)).await;
    b.owners_when("t", |o| o == owners).await;
    let mut acknowledged: Vec<Vec<String>> = vec![Vec::new(); PARTITIONS as usize];
    for (i, owner) in owners.iter().enumerate() {
        let owner = if *owner == a.address { &a } else { &b };
        for round in 0..5 {
            let v = values(&format!("p{i}r{round}"), 3);
            owner.produce("t", u32::try_from(i).unwrap(), &v).await.unwrap();
            acknowledged[i].extend(v);
        }
    }
    b.kill().await;
    // All partitions go to the other, which serves every acknowledged record and takes new ones.
    a.owners_when("t", |o| o.iter().all(|o| *o == a.address)).await;
    for (i, want) in acknowledged.iter_mut().enumerate() {
        let p = u32::try_from(i).unwrap();
        let v = values(&format!("p{i}after"), 2);
        eventually("a produce after the take-over", async || match a.produce("t", p, &v).await {
            Ok(r) => Some(r),
            Err(e) => {
                assert!(code(&e).retryable(), "{e:?}");
                None
            }
        })
        .await;
        want.extend(v);
        let got = a.read_all("t", p).await;
        assert_eq!(
            got.iter().map(|(o, _)| *o).collect::<Vec<_>>(),
            (0..got.len() as i64).collect::<Vec<_>>()
        );
        assert_eq!(&got.into_iter().map(|(_, v)| v).collect::<Vec<_>>(), want);
    }
    // The same name comes back: the same member, its share again, and everything is there.
    let b = c.broker("broker-b").await;
    let owners = b.owners_when("t", |o| shared(o, &a, &b)).await;
    for (i, owner) in owners.iter().enumerate() {
        let owner = if *owner == a.address { &a } else { &b };
        let p = u32::try_from(i).unwrap();
        let got = eventually("a read after the move", async || {
            let p = owner.fetch("t", p, 0, false, 0).await;
            p.error.is_none().then_some(())
        });
        got.await;
        let got: Vec<String> = owner.read_all("t", p).await.into_iter().map(|(_, v)| v).collect();
        assert_eq!(got, acknowledged[i]);
    }
    // A drain hands over in order: nobody waits for a session to expire.
    b.stop().await;
    assert!(b.metric("tidemill_broker_releases_total") >= 2.0);
    a.owners_when("t", |o| o.iter().all(|o| *o == a.address)).await;
    for (i, want) in acknowledged.iter().enumerate() {
        let p = u32::try_from(i).unwrap();
        eventually("a read after the drain", async || {
            a.fetch("t", p, 0, false, 0).await.error.is_none().then_some(())
        })
        .await;
        assert_eq!(&a.read_all("t", p).await.into_iter().map(|(_, v)| v).collect::<Vec<_>>(), want);
    }
    a.stop().await;
    c.stop().await;
}
