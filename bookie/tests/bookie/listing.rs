//! What a bookie tells of what it holds.

use tidemill_proto::bookie::{Code, GetInfoRequest, ListLedgersRequest, ListRangesRequest, Range};
use tidemill_types::LedgerId;

use crate::{
    broker::Broker,
    calls::{Adds, fence},
    quorum::Quorum,
    shelf::{Bookie, Disks, config},
};

async fn ranges(bookie: &Bookie, ledger: LedgerId, first: i64, last: i64) -> (Code, Vec<Range>) {
    let request =
        ListRangesRequest { identity: Some(bookie.identity().await), ledger: ledger.0, first, last };
    let r = bookie.control.clone().list_ranges(request).await.unwrap().into_inner();
    (r.code(), r.ranges)
}

#[tokio::test(flavor = "multi_thread")]
async fn ledgers_ranges_and_figures() {
    let (quorum, disks) = (Quorum::start().await, Disks::new(2));
    let bookie = Bookie::start(config(&quorum, &disks)).await;
    let broker = Broker::start(&quorum).await;
    let owned = broker.topic("t").await;
    let mut adds = Adds::to(&bookie).await;
    let mut ledgers = Vec::new();
    for _ in 0..5 {
        let ledger = broker.ledger(owned, &[bookie.id()]).await.id;
        for e in [0, 1, 2, 7, 8, 20] {
            assert_eq!(adds.add(ledger, e, b"x").await, Code::Ok);
        }
        ledgers.push(ledger);
    }
    assert_eq!(fence(&bookie, ledgers[0]).await, (Code::Ok, 19));

    let page = async |after: u64, limit: u32| {
        let request = ListLedgersRequest { identity: Some(bookie.identity().await), after, limit };
        bookie.control.clone().list_ledgers(request).await.unwrap().into_inner()
    };
    let first = page(0, 3).await.ledgers;
    assert_eq!(
        first.iter().map(|l| l.ledger).collect::<Vec<_>>(),
        ledgers[..3].iter().map(|l| l.0).collect::<Vec<_>>()
    );
    let l = &first[0];
    assert_eq!((l.fenced, l.lac, l.last_entry, l.entries), (true, 19, 20, 6));
    assert!(!first[1].fenced);
    assert_eq!(page(first[2].ledger, 10).await.ledgers.len(), 2);
    assert_eq!(page(0, 0).await.code(), Code::Invalid);

    let r = |first, last| Range { first, last };
    assert_eq!(ranges(&bookie, ledgers[1], 0, 100).await, (Code::Ok, vec![r(0, 2), r(7, 8), r(20, 20)]));
    assert_eq!(ranges(&bookie, ledgers[1], 2, 7).await, (Code::Ok, vec![r(2, 2), r(7, 7)]));
    assert_eq!(ranges(&bookie, LedgerId(999), 0, 1).await.0, Code::NoSuchLedger);
    assert_eq!(ranges(&bookie, ledgers[1], 5, 4).await.0, Code::Invalid);

    let info = bookie.control.clone().get_info(GetInfoRequest { identity: None }).await.unwrap().into_inner();
    assert_eq!((info.state.as_str(), info.ledgers, info.entries), ("rw", 5, 30));
    assert!(
        info.written_bytes > info.payload_bytes && info.free_bytes <= info.total_bytes && info.segments >= 2
    );
    bookie.stop().await;
}
