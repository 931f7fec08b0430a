//! Adds and their acknowledgements, and what stays in memory (1.3).

use super::*;

/// 1.3 step 3: acknowledgement is in order of ids.
#[test]
fn acks_out_of_order_wait_for_the_oldest() {
    let mut w = W::new();
    (0..3).for_each(|_| w.add_one());
    for e in [2, 1] {
        w.ack(0, e);
        w.ack(1, e);
    }
    assert_eq!(w.core.lac(), EntryId::NONE);
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
    w.ack(2, 0);
    assert_eq!(w.core.lac(), EntryId(2));
}

/// R10: the same ack twice is one ack.
#[test]
fn a_repeated_ack_counts_once() {
    let mut w = W::new();
    w.add();
    w.ack(0, 0);
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
}

/// R10, M20: B is replaced by D and D by B again; the first ack of B comes late.
#[test]
fn an_ack_of_a_void_attempt_is_dropped() {
    let mut w = W::new();
    w.add();
    w.ack(0, 0);
    let old = w.attempt(1);
    w.replace(1, 3);
    let c = w.proposed();
    w.commit(&c);
    w.replace(3, 1);
    let c = w.proposed();
    w.commit(&c);
    assert_eq!(w.core.members[1].bookie, b(1));
    w.answer(1, 1, old, 0, AddAnswer::Ok);
    assert!(w.out.iter().any(|o| matches!(o, Output::VoidAnswer)));
    assert_eq!(w.core.lac(), EntryId::NONE);
    w.ack(1, 0);
    assert_eq!(w.core.lac(), EntryId(0));
}

/// R10: another process of the same bookie is another attempt.
#[test]
fn an_ack_of_an_earlier_process_is_dropped() {
    let mut w = W::new();
    w.add();
    let old = w.attempt(1);
    w.core.step(Input::BookieDown { bookie: b(1) }, &mut w.out);
    w.up(1, 2);
    w.answer(1, 1, old, 0, AddAnswer::Ok);
    w.ack(0, 0);
    assert_eq!(w.core.lac(), EntryId::NONE);
}

/// R12: the bytes are the same for all copies, resends and replacements, with the LAC of the first send.
#[test]
fn an_entry_is_encoded_once() {
    let mut w = W::new();
    w.add();
    w.ack(0, 0);
    w.ack(1, 0);
    w.add();
    w.core.step(Input::BookieDown { bookie: b(2) }, &mut w.out);
    w.up(2, 2);
    w.ack(0, 1);
    w.ack(1, 1);
    w.add();
    w.replace(2, 3);
    let mut all: Vec<Entry> = vec![];
    for o in &w.out {
        if let Output::Send { entry, .. } = o {
            all.push(entry.clone());
        }
    }
    let c = w.proposed();
    w.commit(&c);
    for o in &w.out {
        if let Output::Send { entry, .. } = o {
            all.push(entry.clone());
        }
    }
    for id in 0..3 {
        let copies: Vec<_> = all.iter().filter(|e| e.header().entry == EntryId(id)).collect();
        assert!(copies.len() >= 3);
        assert!(copies.iter().all(|e| e.bytes() == copies[0].bytes()));
    }
    assert_eq!(all.iter().find(|e| e.header().entry == EntryId(1)).unwrap().header().lac, EntryId(0));
}

/// R28: overload and unknowns bring the same attempt again and nothing else.
#[test]
fn overload_is_waited_out() {
    let mut w = W::new();
    w.add();
    let a = w.attempt(1);
    w.out.clear();
    let retry_after = Duration::from_millis(30);
    w.answer(1, 1, a, 0, AddAnswer::Overloaded { retry_after });
    w.answer(1, 1, a, 0, AddAnswer::Unknown(Unknown::Undecided));
    assert!(matches!(w.out[0], Output::ResendLater { after: Some(d), .. } if d == retry_after));
    assert!(matches!(w.out[1], Output::ResendLater { after: None, .. }));
    assert_eq!(w.out.len(), 2);
    w.core.step(Input::ResendDue { index: 1, attempt: a, entry: EntryId(0) }, &mut w.out);
    assert_eq!(w.sends(), [(1, b(1), 0)]);
}

/// R28: no spare, no change; once back everything in memory is sent and the ledger is whole again.
#[test]
fn degraded_and_restored() {
    let mut w = W::new();
    w.core.step(Input::BookieDown { bookie: b(2) }, &mut w.out);
    w.core.step(Input::Replace { failed: &[b(2)], spares: &[] }, &mut w.out);
    w.core.step(Input::Replace { failed: &[b(2)], spares: &[] }, &mut w.out);
    assert_eq!(w.out.iter().filter(|o| matches!(o, Output::Degraded(_))).count(), 1);
    for e in 0..3 {
        w.add();
        w.ack(0, e);
        w.ack(1, e);
    }
    assert_eq!(w.core.lac(), EntryId(2));
    w.out.clear();
    w.up(2, 2);
    assert_eq!(w.sends(), [(2, b(2), 0), (2, b(2), 1), (2, b(2), 2)]);
    (0..3).for_each(|e| w.ack(2, e));
    assert!(w.out.iter().any(|o| matches!(o, Output::Restored(_))));
    w.core.begin_close(&mut w.out).unwrap();
    assert!(w.core.close_command().unwrap().under.is_empty());
}

/// R28, 1.3 step 6: past the cap acknowledged copies are given up, others never.
#[test]
fn shedding_gives_up_acknowledged_entries_only() {
    let mut w = W::new();
    for e in 0..2 {
        w.add();
        w.ack(0, e);
        w.ack(1, e);
    }
    w.add();
    w.core.step(Input::Shed { bookie: b(2) }, &mut w.out);
    assert!(w.out.iter().any(|o| matches!(o, Output::RollWanted)));
    w.ack(2, 2);
    w.ack(0, 2);
    assert_eq!(w.core.lac(), EntryId(2));
    w.core.begin_close(&mut w.out).unwrap();
    let under = w.core.close_command().unwrap().under;
    // Entry 2 lacks index 1 (M31).
    assert_eq!(under, [tidemill_types::EntryRange { first: EntryId(0), last: EntryId(2) }]);
}

/// 1.3 step 6: memory is given back in order as copies complete.
#[test]
fn entries_leave_memory_when_all_copies_are_there() {
    let mut w = W::new();
    (0..3).for_each(|_| w.add_one());
    for e in 0..3 {
        (0..2).for_each(|i| w.ack(i, e));
    }
    assert_eq!(w.core.ops.len(), 3);
    w.ack(2, 1);
    assert!(w.core.ops[1].entry.is_none() && w.core.ops.len() == 3);
    w.ack(2, 0);
    assert_eq!(w.core.ops.len(), 1);
    assert_eq!(w.core.unacknowledged().map(|(_, u)| u).collect::<Vec<_>>(), [0, 0, 57]);
}
