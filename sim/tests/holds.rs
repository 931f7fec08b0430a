//! With every rule on nothing breaks: these scopes are explored whole. Larger ones: the binary `model`.

use tidemill_sim::{
    explore::explore,
    model::{Ledger, Scope},
};

fn holds(scope: Scope) {
    let f = explore(&Ledger(scope), 5_000_000);
    assert!(f.violation.is_none(), "{:#?}", f.violation);
    assert!(f.complete, "cut at {} states", f.states);
}

fn closing(s: &mut Scope) {
    s.writer_closes = true;
    s.unknown_outcomes = 1;
}

#[test]
fn two_copies_with_time_outs_fenced_answers_and_lacs() {
    holds(Scope::new(2, 2).with(|s| {
        s.timeouts = true;
        s.fenced_answers = true;
        s.check_lac = true;
    }));
}

#[test]
fn two_copies_with_changes_on_both_sides() {
    holds(Scope::new(2, 2).changes(1, 1));
}

#[test]
fn two_copies_two_entries_with_a_change_in_recovery() {
    holds(Scope::new(2, 2).prompt().entries(2).changes(0, 1).with(|s| s.check_lac = true));
}

#[test]
fn two_copies_two_recoverers_that_change() {
    holds(Scope::new(2, 2).prompt().recoverers(2).changes(0, 1));
}

#[test]
fn two_copies_closed_by_the_writer_with_an_unknown_outcome() {
    holds(Scope::new(2, 2).prompt().entries(2).with(closing));
}

#[test]
fn two_copies_closed_by_the_writer_with_changes_on_both_sides() {
    holds(Scope::new(2, 2).prompt().changes(1, 1).with(closing));
}

#[test]
fn three_copies_with_time_outs() {
    holds(Scope::new(3, 2).prompt().with(|s| s.timeouts = true));
}

#[test]
fn three_copies_with_a_change_by_the_writer() {
    holds(Scope::new(3, 2).prompt().changes(1, 0));
}

#[test]
fn three_copies_with_syncs_and_a_crash() {
    holds(Scope::new(3, 2).prompt().with(|s| {
        s.async_sync = true;
        s.crashes = 1;
    }));
}
