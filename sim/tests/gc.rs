//! Garbage collection (R20): explored whole with every rule on; each rule off is caught.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

use tidemill_bookie::collector::{PASSES, Rules};
use tidemill_sim::{
    explore::{Found, explore},
    gc::{Fault, Gc},
};

const LIMIT: usize = 5_000_000;

fn wrong_read() -> Gc {
    Gc { faults: Vec::new(), wrong_reads: 1, ..Gc::default() }
}

fn run(gc: &Gc) -> Found {
    let f = explore(gc, LIMIT);
    println!("{gc:?}: {} states, depth {}", f.states, f.depth);
    for (n, step) in f.violation.iter().flat_map(|(_, steps)| steps).enumerate() {
        println!("  {:2}. {step}", n + 1);
    }
    f
}

fn holds(gc: &Gc) {
    let f = run(gc);
    assert!(f.violation.is_none() && f.complete, "{f:#?}");
}

/// With the rule off the checker finds a copy that is lost; with it on it finds none.
fn broken(gc: &Gc, off: impl FnOnce(&mut Rules)) {
    let mut without = gc.clone();
    off(&mut without.rules);
    let f = run(&without);
    let (what, steps) = f.violation.expect("the rule is off, a violation has to be found");
    assert!(what.starts_with('K') && !steps.is_empty(), "{what}");
    holds(gc);
}

fn only(fault: Fault) -> Gc {
    Gc { faults: vec![fault], ..Gc::default() }
}

#[test]
fn holds_with_a_quorum_that_forgets() {
    holds(&Gc::default());
}

#[test]
fn holds_with_a_wrong_read() {
    holds(&wrong_read());
}

#[test]
fn the_cluster_is_not_compared() {
    broken(&only(Fault::Foreign), |r| r.same_cluster = false);
}

#[test]
fn the_session_is_not_compared() {
    broken(&only(Fault::Old), |r| r.live_session = false);
}

#[test]
fn the_next_ledger_is_not_compared() {
    broken(&only(Fault::Tail), |r| r.handed_out = false);
}

#[test]
fn fewer_passes_in_a_row() {
    for passes in 1..PASSES {
        broken(&only(Fault::Passing), |r| r.passes = passes);
    }
}

#[test]
fn one_read_is_enough() {
    broken(&wrong_read(), |r| (r.second_pass, r.under_lock) = (false, false));
}

/// The record changes between the read and the delete (M30).
#[test]
fn not_read_again_under_the_lock() {
    broken(&Gc { faults: Vec::new(), ..Gc::default() }, |r| r.under_lock = false);
}

#[test]
fn m18_open_ledgers_are_collected_too() {
    broken(&Gc { faults: Vec::new(), ..Gc::default() }, |r| r.closed_only = false);
}

/// What is deleted for good is collected in the end, also when it was everything: else the rule would hold for nothing.
#[test]
fn everything_that_was_deleted_can_be_collected() {
    let f = explore(&Emptied(Gc::default()), LIMIT);
    assert!(f.violation.is_some(), "no way to an empty bookie in {} states", f.states);
}

/// "Breaks" when both ledgers were deleted and collected.
struct Emptied(Gc);

impl tidemill_sim::explore::Model for Emptied {
    type State = <Gc as tidemill_sim::explore::Model>::State;
    type Action = <Gc as tidemill_sim::explore::Model>::Action;

    fn initial(&self) -> Self::State {
        self.0.initial()
    }
    fn actions(&self, s: &Self::State, out: &mut Vec<Self::Action>) {
        self.0.actions(s, out);
    }
    fn apply(&self, s: &Self::State, a: Self::Action) -> Self::State {
        self.0.apply(s, a)
    }
    fn fingerprint(&self, s: &Self::State) -> u128 {
        self.0.fingerprint(s)
    }
    fn violated(&self, s: &Self::State) -> Option<String> {
        (s.is_emptied()).then(|| "empty".to_owned())
    }
    fn describe(&self, s: &Self::State, a: Self::Action) -> String {
        self.0.describe(s, a)
    }
}
