//! Many threads at once on one partition: producers, readers behind and at the tail, rolls, fences, evictions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tidemill_types::Offset;

use crate::cluster::{Cluster, batch, submit};

const PRODUCERS: i64 = 6;
const EACH: i32 = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_neither_lock_each_other_out_nor_lose_order() {
    let c = Cluster::with(|c| {
        c.roll_bytes = 20_000;
        c.tail_cache_bytes = 5_000;
        c.coalesce_after = 4;
        c.state_entry_every = 4_000;
    });
    let b = c.broker(1);
    let log = c.serve(&b).await;
    let done = Arc::new(AtomicBool::new(false));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|id| {
            let log = log.clone();
            tokio::spawn(async move {
                let mut handles = Vec::new();
                for seq in 0..EACH {
                    handles.push(submit(&log, batch(&[&format!("{id}/{seq}")], Some((id, 0, seq)))).await);
                    if handles.len() == 5 {
                        for h in handles.drain(..) {
                            assert!(!h.await.unwrap().duplicate);
                        }
                    }
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..3)
        .map(|n| {
            let (log, done) = (log.clone(), done.clone());
            tokio::spawn(async move {
                let mut at = Offset(0);
                while at < log.high_watermark() || !done.load(Ordering::SeqCst) {
                    if at >= log.high_watermark() {
                        tokio::select! {
                            () = log.wait_for_data(at) => {}
                            () = tokio::time::sleep(Duration::from_millis(5)) => {}
                        }
                        continue;
                    }
                    // Another owner's recovery of a fenced ledger may stand in the way for a moment.
                    if let Ok(r) = log.read(at, 1 << (n * 5)).await {
                        at = r.next_offset;
                    }
                }
                at
            })
        })
        .collect();
    let upkeep = tokio::spawn({
        let (log, done, clock) = (log.clone(), done.clone(), c.clock.clone());
        let fencer = c.broker(2);
        async move {
            let mut n = 0;
            while !done.load(Ordering::SeqCst) {
                tidemill_runtime::ManualClock::advance(&clock, Duration::from_millis(100));
                log.maintain(tidemill_runtime::Clock::boottime(&*clock));
                n += 1;
                if n % 20 == 0
                    && let Some(l) = log.describe().open_ledger
                {
                    let _ = fencer.ctx.ledgers.recover(l).await;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    let all = async {
        for p in producers {
            p.await.unwrap();
        }
        done.store(true, Ordering::SeqCst);
        let end = log.high_watermark();
        for r in readers {
            assert_eq!(r.await.unwrap(), end);
        }
        upkeep.await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(120), all).await.expect("nothing moves any more");
    let dump = c.dump(&log).await;
    for id in 0..PRODUCERS {
        let prefix = format!("{id}/");
        let mine: Vec<i32> = dump.iter().filter_map(|(_, v)| v.strip_prefix(&prefix)?.parse().ok()).collect();
        assert_eq!(mine, (0..EACH).collect::<Vec<_>>());
    }
    assert!(log.describe().ledgers > 1);
}
