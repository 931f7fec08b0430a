//! With every rule on nothing breaks: these scopes are explored whole.

use tidemill_sim::{
    explore::explore,
    model::{Ledger, Scope},
};

fn holds(scope: Scope) {
    let f = explore(&Ledger(scope), 5_000_000);
    assert!(f.violation.is_none(), "{:#?}", f.violation);
    assert!(f.complete, "cut at {} states", f.states);
}

#[test]
fn two_copies() {
    holds(Scope::new(2, 2));
}

#[test]
fn two_copies_with_time_outs_and_fenced_answers() {
    holds(Scope::new(2, 2).with(|s| {
        s.timeouts = true;
        s.fenced_answers = true;
        s.check_lac = true;
    }));
}
