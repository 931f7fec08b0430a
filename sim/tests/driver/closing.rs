use tidemill_ledger::{AppendError, AppendRefused, BarrierError, CommitError};
use tidemill_types::{
    EntryId, Epoch, LedgerState,
    meta::{CloseLedger, Command},
};

use super::{
    fake::{Cluster, Fault},
    writing::{append, until},
};

fn close(close: CloseLedger) -> Command {
    Command::Close { close, epoch: Some(Epoch(1)) }
}

#[tokio::test(start_paused = true)]
async fn a_close_stores_the_lac_and_gives_the_rest_back() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 3).await;
    c.bookies[0].stall();
    c.bookies[1].stall();
    let h = w.append(b"late", &[]).unwrap();
    until("two accepted it", || c.bookies.iter().all(|b| b.counts().0 == 4)).await;
    let t = w.begin_close().await.unwrap();
    assert!(matches!(w.append(b"x", &[]), Err(AppendRefused::Closing(_))));
    // Acks that come now count for nothing: the end may be stored already.
    c.bookies[0].release().await;
    c.bookies[1].release().await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(w.lac(), EntryId(2));
    let done = t.commit(7, close).await.unwrap();
    assert_eq!(done.pending.len(), 1);
    assert_eq!(done.pending[0].envelope, "late");
    assert_eq!(h.await, Err(AppendError::NotWritten));
    let r = c.meta.record(w.ledger());
    assert_eq!((r.state, r.last_entry, r.length), (LedgerState::Closed, Some(EntryId(2)), Some(21)));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_close_is_settled_with_the_same_end() {
    for faults in [
        vec![Fault::Lost, Fault::Lost],
        vec![Fault::AppliedUnheard],
        vec![Fault::Lost, Fault::AppliedUnheard],
        vec![Fault::VersionMoves],
    ] {
        let c = Cluster::new(3);
        let w = c.client.open_writer(c.create(1, 3, 2));
        append(&w, 2).await;
        for f in &faults {
            c.meta.fault(*f);
        }
        let t = w.begin_close().await.unwrap();
        t.commit(0, close).await.unwrap();
        assert_eq!(c.meta.record(w.ledger()).last_entry, Some(EntryId(1)));
        let ends: Vec<EntryId> = c
            .meta
            .commands
            .lock()
            .iter()
            .map(|x| match x {
                Command::Close { close, .. } => close.last_entry,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(ends.iter().all(|e| *e == EntryId(1)), "{faults:?}: {ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_that_was_not_sent_can_be_resumed_an_unsettled_one_cannot() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    c.meta.fault(Fault::Unavailable);
    let t = w.begin_close().await.unwrap();
    let Err(CommitError::NotSent(t, _)) = t.commit(0, close).await else { panic!("was sent") };
    t.resume().unwrap();
    append(&w, 1).await;
    let t = w.begin_close().await.unwrap();
    let _sent = t.close(0).unwrap();
    assert!(t.resume().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_close_waits_for_the_ensemble_change_under_way() {
    let c = Cluster::new(4);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    c.meta.hold_commands(true);
    c.bookies[2].cut();
    c.meta.command_arrived().await;
    let mut begun = Box::pin(w.begin_close());
    assert!(futures::poll!(&mut begun).is_pending());
    c.meta.hold_commands(false);
    let t = begun.await.unwrap();
    assert_eq!(w.record().fragments.last().unwrap().ensemble[2], c.bookies[3].id);
    t.commit(0, close).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_barrier_needs_the_ack_quorum_and_a_close_voids_it() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    w.barrier(b"barrier").await.unwrap();
    c.bookies[0].stall();
    c.bookies[1].stall();
    let mut waits = Box::pin(w.barrier(b"barrier"));
    assert!(futures::poll!(&mut waits).is_pending());
    let t = w.begin_close().await.unwrap();
    assert_eq!(waits.await, Err(BarrierError::Voided));
    c.bookies[0].release().await;
    assert_eq!(w.barrier(b"barrier").await, Err(BarrierError::Voided));
    t.fenced();
    assert_eq!(w.barrier(b"barrier").await, Err(BarrierError::Stopped));
}
