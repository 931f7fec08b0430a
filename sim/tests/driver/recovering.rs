use tidemill_ledger::{AppendError, BarrierError, RecoverError, Recovered, WriterEvent};
use tidemill_types::{Entry, EntryId, LedgerId, LedgerState, meta::Command};

use super::{
    fake::Cluster,
    writing::{append, until},
};

async fn recover_and_close(c: &Cluster, ledger: LedgerId) -> EntryId {
    let other = c.another_client();
    let Recovered::Decided(end) = other.recover(ledger).await.unwrap() else { panic!("closed already") };
    let last = end.close.last_entry;
    tidemill_ledger::LedgerMeta::propose(&*c.meta, Command::Close { close: end.close, epoch: None })
        .await
        .unwrap()
        .unwrap();
    last
}

#[tokio::test(start_paused = true)]
async fn a_fenced_writer_stops_and_its_entries_are_resolved_against_the_stored_end() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    let mut events = w.events();
    append(&w, 4).await;
    // Entry 4 reaches one bookie, entry 5 none.
    c.bookies[0].cut();
    c.bookies[1].cut();
    let four = w.append(b"four", &[]).unwrap();
    until("one copy", || c.bookies[2].holds(w.ledger()).len() == 5).await;
    c.bookies[2].cut();
    let five = w.append(b"five", &[]).unwrap();
    // With bookie 0 away the one copy has to decide.
    c.bookies[1..].iter().for_each(|b| b.back_without_streams());
    let end = recover_and_close(&c, w.ledger()).await;
    c.bookies.iter().for_each(|b| b.back());
    assert_eq!(events.recv().await, Some(WriterEvent::Fenced));
    assert_eq!(w.barrier(b"b").await, Err(BarrierError::Stopped));
    assert_eq!(w.lac(), EntryId(3));
    // What may have been acknowledged was kept.
    assert_eq!(end, EntryId(4));
    let rest = w.resolve(end);
    assert_eq!(four.await, Ok(()));
    assert_eq!((rest.len(), &rest[0].envelope[..]), (1, &b"five"[..]));
    assert_eq!(five.await, Err(AppendError::NotWritten));
    // Written back to Qa bookies, the same bytes.
    let copies: Vec<_> = c.bookies.iter().filter_map(|b| b.bytes(w.ledger(), EntryId(4))).collect();
    assert!(copies.len() >= 2 && copies.iter().all(|b| *b == copies[0]));
}

#[tokio::test(start_paused = true)]
async fn a_hung_bookie_does_not_block_recovery() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 2).await;
    until("copies", || c.bookies.iter().all(|b| b.holds(w.ledger()).len() == 2)).await;
    c.bookies[1].silent();
    assert_eq!(recover_and_close(&c, w.ledger()).await, EntryId(1));
    let Recovered::Closed(r) = c.client.recover(w.ledger()).await.unwrap() else { panic!("not closed") };
    assert_eq!((r.last_entry, r.length), (Some(EntryId(1)), Some(14)));
}

#[tokio::test(start_paused = true)]
async fn too_few_bookies_decide_nothing() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 2).await;
    c.bookies[0].cut();
    c.bookies[1].cut();
    let e = c.another_client().recover(w.ledger()).await.unwrap_err();
    assert_eq!(e, RecoverError::NotFenced { ledger: LedgerId(1), confirmed: 1, needed: 2 });
    let r = c.meta.record(w.ledger());
    assert_eq!((r.state, r.last_entry), (LedgerState::InRecovery, None));
    c.bookies[0].back();
    assert_eq!(recover_and_close(&c, w.ledger()).await, EntryId(1));
}

#[tokio::test(start_paused = true)]
async fn a_corrupt_copy_is_unknown_and_never_truncates() {
    let c = Cluster::new(3);
    let r = c.create(1, 3, 2);
    let e = Entry::encode(r.id, EntryId(0), EntryId::NONE, 0, b"e", &[]).unwrap();
    // Acknowledged by two; one of them now serves rubbish and the other is gone: two negatives are not there.
    c.bookies[0].put(&e);
    c.bookies[1].put(&e);
    c.bookies[0].corrupt(EntryId(0));
    c.bookies[1].corrupt(EntryId(0));
    let got = c.client.recover(r.id).await.unwrap_err();
    assert_eq!(got, RecoverError::Undecided { ledger: r.id, entry: EntryId(0) });
}

#[tokio::test(start_paused = true)]
async fn a_bookie_that_fails_during_write_back_is_replaced_locally_only() {
    let c = Cluster::new(4);
    let r = c.create(1, 3, 3);
    let e = Entry::encode(r.id, EntryId(0), EntryId::NONE, 0, b"e", &[]).unwrap();
    c.bookies[0].put(&e);
    c.bookies[2].cut();
    let Recovered::Decided(end) = c.client.recover(r.id).await.unwrap() else { panic!("closed") };
    assert_eq!(end.close.last_entry, EntryId(0));
    assert_eq!(end.close.fragments.len(), 1);
    assert_eq!(end.close.fragments[0].ensemble[2], c.bookies[3].id);
    assert_eq!(end.close.limbo_counts, [(c.bookies[3].id, 0)]);
    assert_eq!(end.last.as_ref(), Some(&e));
    // R8: nothing stored before the close.
    assert_eq!(c.meta.record(r.id).fragments, r.fragments);
    assert_eq!(end.reader.read(EntryId(0)).await.unwrap(), e);
}

#[tokio::test(start_paused = true)]
async fn many_ledgers_share_their_fences() {
    let c = Cluster::new(3);
    let ids: Vec<LedgerId> = (1..=100).map(|n| c.create(n, 3, 2).id).collect();
    let all = c.client.recover_many(&ids).await;
    assert!(
        all.iter().all(|r| matches!(r, Ok(Recovered::Decided(e)) if e.close.last_entry == EntryId::NONE))
    );
    let (_, _, calls) = c.bookies[0].counts();
    assert!(calls <= 5, "{calls} fence calls for 100 ledgers");
}
