use std::time::Duration;

use bytes::Bytes;
use tidemill_ledger::{
    LedgerWriter, WriterEvent,
    core::{AddAnswer, Unknown},
};
use tidemill_types::{BookieState, EntryId, Incarnation, meta::Command};

use super::fake::{Cluster, Fault};

pub(crate) async fn append(w: &LedgerWriter, n: usize) {
    for i in 0..n {
        w.append(b"e", &[Bytes::from(format!("body {i}"))]).unwrap().await.unwrap();
    }
}

/// Waits until the condition holds; paused time makes the pauses free.
pub(crate) async fn until(what: &str, mut f: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if f() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never happened: {what}");
}

#[tokio::test(start_paused = true)]
async fn entries_reach_all_copies_and_are_acknowledged_in_order() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    let handles: Vec<_> = (0..50).map(|_| w.append(b"e", &[Bytes::from_static(b"x")]).unwrap()).collect();
    for (n, h) in handles.into_iter().enumerate() {
        assert_eq!(h.entry(), EntryId(n as i64));
        h.await.unwrap();
        assert!(w.lac().0 >= n as i64);
    }
    until("all copies", || c.bookies.iter().all(|b| b.holds(w.ledger()).len() == 50)).await;
    assert_eq!((w.in_flight_bytes(), w.length()), (0, 100));
    // Adds that were queued together share messages.
    let (adds, messages, _) = c.bookies[0].counts();
    assert!(messages < adds, "{adds} adds in {messages} messages");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_bookie_stops_nobody_and_changes_nothing() {
    let c = Cluster::new(4);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    c.bookies[2].stall();
    append(&w, 10).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    append(&w, 1).await;
    assert!(c.meta.commands.lock().is_empty());
    c.bookies[2].release().await;
    until("the slow copy", || c.bookies[2].holds(w.ledger()).len() == 12).await;
}

#[tokio::test(start_paused = true)]
async fn a_bookie_that_stays_away_is_replaced_and_what_it_lacks_is_noted() {
    let c = Cluster::new(4);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 3).await;
    until("all copies", || c.bookies[1].holds(w.ledger()).len() == 3).await;
    c.bookies[1].cut();
    append(&w, 2).await; // acknowledged by the two others, before any change
    assert!(c.meta.commands.lock().is_empty());
    until("the change", || w.record().fragments.len() == 2).await;
    let r = c.meta.record(w.ledger());
    assert_eq!(r.fragments[1].first_entry, EntryId(5));
    assert_eq!(r.fragments[1].ensemble[1], c.bookies[3].id);
    append(&w, 2).await;
    until("the spare's copies", || c.bookies[3].holds(w.ledger()) == [5, 6]).await;
    let commands = c.meta.commands.lock().clone();
    let Command::ChangeEnsemble(change) = &commands[0] else { panic!("{commands:?}") };
    let under: Vec<(i64, i64)> = change.under.iter().map(|r| (r.first.0, r.last.0)).collect();
    assert_eq!(under, [(3, 4)]);
}

#[tokio::test(start_paused = true)]
async fn without_a_spare_the_ledger_goes_on_degraded_and_is_made_whole() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    let mut events = w.events();
    append(&w, 1).await;
    c.bookies[0].cut();
    append(&w, 3).await;
    assert_eq!(events.recv().await, Some(WriterEvent::Degraded(c.bookies[0].id)));
    append(&w, 3).await;
    c.bookies[0].back();
    assert_eq!(events.recv().await, Some(WriterEvent::Restored(c.bookies[0].id)));
    assert_eq!(c.bookies[0].holds(w.ledger()).len(), 7);
    assert_eq!(w.record().fragments.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_announced_restart_gets_more_time_and_a_new_process_gets_what_it_missed() {
    let c = Cluster::new(4);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    c.meta.edit_table(|t| t[1].restarting = true);
    c.bookies[1].cut();
    append(&w, 2).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    append(&w, 1).await;
    c.meta.edit_table(|t| {
        t[1].restarting = false;
        t[1].incarnation = Incarnation(2);
    });
    c.bookies[1].back();
    until("the copies", || c.bookies[1].holds(w.ledger()).len() == 4).await;
    assert_eq!(w.record().fragments.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn states_of_the_quorum_count_without_delay() {
    let c = Cluster::new(4);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    let mut events = w.events();
    c.meta.edit_table(|t| t[0].state = BookieState::Ro);
    until("the change", || w.record().fragments.len() == 2).await;
    c.meta.edit_table(|t| t[1].state = BookieState::Draining);
    assert_eq!(events.recv().await, Some(WriterEvent::RollWanted));
}

#[tokio::test(start_paused = true)]
async fn unknown_outcomes_of_a_change_are_settled_by_the_same_command() {
    let c = Cluster::new(4);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    c.meta.fault(Fault::Unavailable);
    c.meta.fault(Fault::Lost);
    c.meta.fault(Fault::Lost);
    c.meta.fault(Fault::AppliedUnheard);
    c.bookies[2].cut();
    until("the change", || w.record().fragments.len() == 2).await;
    let commands = c.meta.commands.lock().clone();
    assert!(commands.len() >= 4 && commands.iter().all(|x| *x == commands[0]), "{commands:?}");
    append(&w, 2).await;
    assert_eq!(w.record(), c.meta.record(w.ledger()));
}

#[tokio::test(start_paused = true)]
async fn a_repair_that_moves_the_version_costs_another_attempt_only() {
    let c = Cluster::new(4);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    c.meta.fault(Fault::VersionMoves);
    c.bookies[2].cut();
    until("the change", || w.record().fragments.len() == 2).await;
    append(&w, 1).await;
}

#[tokio::test(start_paused = true)]
async fn produce_goes_on_while_the_quorum_is_down_and_a_bookie_dead() {
    let c = Cluster::new(4);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    c.meta.hold_commands(true);
    c.bookies[2].cut();
    c.meta.command_arrived().await;
    append(&w, 20).await;
    c.meta.hold_commands(false);
    until("the change", || w.record().fragments.len() == 2).await;
    let first = w.record().fragments[1].first_entry;
    until("the spare has all from the fragment's start on", || {
        c.bookies[3].holds(w.ledger()) == (first.0..21).collect::<Vec<_>>()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn overload_and_unknown_answers_bring_the_same_bytes_again() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 3));
    c.bookies[0].refuse(AddAnswer::Overloaded { retry_after: Duration::from_millis(300) });
    c.bookies[1].refuse(AddAnswer::Unknown(Unknown::Undecided));
    append(&w, 1).await;
    let (l, e) = (w.ledger(), EntryId(0));
    assert!(c.bookies.iter().all(|b| b.bytes(l, e) == c.bookies[2].bytes(l, e)));
    assert!(c.meta.commands.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn past_the_cap_without_a_spare_copies_are_given_up_and_a_roll_is_wanted() {
    let c = Cluster::with(3, |f| f.unacked_cap = 10_000);
    let w = c.client.open_writer(c.create(1, 3, 2));
    let mut events = w.events();
    append(&w, 1).await;
    c.bookies[1].stall();
    for _ in 0..30 {
        w.append(b"e", &[Bytes::from(vec![0; 1_000])]).unwrap().await.unwrap();
    }
    let mut seen = vec![];
    while !seen.contains(&WriterEvent::RollWanted) {
        seen.push(events.recv().await.unwrap());
    }
    append(&w, 1).await;
    let t = w.begin_close().await.unwrap();
    assert!(!t.close(0).unwrap().under.is_empty());
}

#[tokio::test(start_paused = true)]
async fn abandoned_entries_have_an_unknown_outcome() {
    let c = Cluster::new(3);
    let w = c.client.open_writer(c.create(1, 3, 2));
    append(&w, 1).await;
    c.bookies[0].stall();
    c.bookies[1].stall();
    let h = w.append(b"e", &[]).unwrap();
    w.abandon();
    assert_eq!(h.await, Err(tidemill_ledger::AppendError::Unknown));
    assert!(w.append(b"e", &[]).is_err());
}
