//! Every rule that can be switched off: the checker has to find what it protects from (ledger protocol 1.9).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_wrap,
    reason = "a test"
)]

use tidemill_ledger::core::AttemptCheck;
use tidemill_sim::{
    explore::{Found, explore},
    model::{Ledger, Scope},
};

const LIMIT: usize = 3_000_000;

fn run(name: &str, scope: Scope) -> Found {
    let f = explore(&Ledger(scope), LIMIT);
    println!("{name}: {} states, depth {}", f.states, f.depth);
    if let Some((what, steps)) = &f.violation {
        println!("  {what}");
        for (n, s) in steps.iter().enumerate() {
            println!("  {:2}. {s}", n + 1);
        }
    }
    f
}

/// The invariant whose name is the first letter of the message breaks; with the rule on it does not within the same number
/// of states.
fn broken(name: &str, invariants: &str, scope: Scope, off: impl FnOnce(&mut Scope)) {
    let on = scope.clone();
    let f = run(name, scope.with(off));
    let (what, steps) = f.violation.expect("the rule is off, a violation has to be found");
    assert!(invariants.contains(&what[..1]), "{name}: {what}");
    assert!(!steps.is_empty());
    let same = explore(&Ledger(on), f.states);
    assert!(same.violation.is_none(), "{name}: broken with the rule on: {:?}", same.violation);
}

#[test]
fn m1_recovery_reads_do_not_fence() {
    broken("M1", "T", Scope::new(3, 2).prompt(), |s| s.rules.fence_reads = false);
}

#[test]
fn m2_one_negative_is_enough() {
    broken("M2", "T", Scope::new(3, 2).prompt(), |s| s.rules.negatives_needed = Some(1));
}

#[test]
fn m4_recovery_reads_follow_the_new_ensemble() {
    broken("M4", "T", Scope::new(2, 2).prompt().entries(2).changes(0, 1), |s| s.rules.frozen_reads = false);
}

#[test]
fn m5_a_recoverer_stores_its_change_at_once() {
    let scope = Scope::new(2, 2).prompt().recoverers(2).changes(0, 1);
    broken("M5", "TRA", scope, |s| s.rules.local_changes = false);
}

#[test]
fn m7_the_new_ensemble_is_used_before_its_commit() {
    broken("M7", "RT", Scope::new(3, 2).prompt().changes(1, 0), |s| s.rules.change_after_commit = false);
}

#[test]
fn m8_acks_of_a_replaced_bookie_are_kept() {
    broken("M8a", "AT", Scope::new(3, 2).prompt().changes(1, 0), |s| s.rules.clear_replaced_acks = false);
    broken("M8b", "TRA", Scope::new(3, 2).prompt().changes(1, 0), |s| s.rules.attempts = AttemptCheck::Index);
}

#[test]
fn m9_a_time_out_counts_as_a_negative() {
    let scope = Scope::new(3, 2).prompt().with(|s| s.timeouts = true);
    broken("M9", "T", scope, |s| s.rules.unknown_is_not_negative = false);
}

#[test]
fn m10_close_without_conditions() {
    broken("M10", "CTA", Scope::new(2, 2).recoverers(2), |s| s.meta_rules.conditional_close = false);
}

#[test]
fn m11_a_fence_of_an_unknown_ledger_is_ignored() {
    broken("M11", "T", Scope::new(3, 2).prompt(), |s| {
        s.bookie_rules.fence_unknown = false;
        s.rules.fence_reads = false;
    });
}

#[test]
fn m12_recovered_entries_are_encoded_anew() {
    let scope = Scope::new(2, 2).prompt().entries(2).recoverers(2).with(|s| s.check_lac = true);
    broken("M12", "D", scope, |s| s.rules.same_bytes = false);
}

#[test]
fn m13_recovered_entries_are_not_written_back() {
    broken("M13", "A", Scope::new(3, 2).prompt(), |s| s.rules.write_back = false);
}

#[test]
fn m16_recovery_starts_below_the_last_fragment() {
    broken("M16", "T", Scope::new(2, 2).prompt().changes(1, 0), |s| s.rules.start_at_last_fragment = false);
}

#[test]
fn m17_negatives_while_an_accepted_add_waits() {
    let scope = Scope::new(3, 2).prompt().with(|s| s.async_sync = true);
    broken("M17", "T", scope, |s| s.bookie_rules.fence_waits = false);
}

/// A bookie is replaced, loses all it had, and is chosen again under its old uuid; then its first ack arrives.
#[test]
fn m20_an_ack_of_before_the_wipe_counts_when_the_bookie_is_chosen_again() {
    let scope = Scope::new(2, 2).prompt().changes(2, 0).with(|s| {
        s.wipes = 1;
        s.wipes_replaced_only = true;
        s.bookie_rules.limbo = false;
    });
    broken("M20", "TRA", scope, |s| s.rules.attempts = AttemptCheck::Name);
}

#[test]
fn m21_all_indexes_count_during_a_change() {
    broken("M21", "T", Scope::new(3, 2).prompt().changes(1, 0), |s| s.rules.only_staying_count = false);
}

#[test]
fn m24_an_unknown_close_is_given_up_after_a_re_read() {
    let scope = Scope::new(2, 2).prompt().with(|s| {
        s.writer_closes = true;
        s.unknown_outcomes = 1;
    });
    broken("M24", "T", scope, |s| s.rules.settle_unknown = false);
}

#[test]
fn m25_an_unknown_change_is_given_up_after_a_re_read() {
    let scope = Scope::new(3, 2).prompt().changes(1, 0).with(|s| s.unknown_outcomes = 1);
    broken("M25", "TRA", scope, |s| s.rules.settle_unknown = false);
}

#[test]
fn acks_after_a_close_was_sent() {
    let scope = Scope::new(2, 2).prompt().with(|s| s.writer_closes = true);
    broken("acks after close", "T", scope, |s| s.rules.lac_stands_at_close = false);
}

/// M3 is positive: with E = Qw and reads that fence, fewer confirmations lose nothing in this scope.
#[test]
fn m3_fewer_fence_confirmations_hold() {
    for n in [1, 0] {
        let f = run("M3", Scope::new(3, 2).prompt().with(|s| s.rules.confirmations_needed = Some(n)));
        assert!(f.complete && f.violation.is_none(), "{:?}", f.violation);
    }
}

fn wiped(s: &mut Scope) {
    s.wipes = 1;
}

/// As BP-46 tells it: nothing is done at the boot; it is fenced but denies; it denies nothing but is not fenced.
#[test]
fn m6_a_bookie_boots_empty_under_its_old_uuid() {
    let scope = || Scope::new(3, 2).prompt().with(wiped);
    broken("M6a", "T", scope(), |s| {
        s.bookie_rules.boot_fence = false;
        s.bookie_rules.limbo = false;
        s.bookie_rules.first_touch = false;
    });
    broken("M6b", "T", scope(), |s| {
        s.bookie_rules.limbo = false;
        s.bookie_rules.first_touch = false;
    });
    broken("M6c", "T", scope(), |s| {
        s.bookie_rules.boot_fence = false;
        s.bookie_rules.first_touch = false;
    });
}

/// M6d is positive, and so is R27's read in limbo in place of the fence at the boot.
#[test]
fn m6d_limbo_and_fenced_at_the_boot_holds() {
    let f = run("M6d", Scope::new(3, 2).prompt().with(wiped));
    assert!(f.complete && f.violation.is_none(), "{:?}", f.violation);
    let f = run("M6d'", Scope::new(3, 2).prompt().with(wiped).with(|s| s.bookie_rules.boot_fence = false));
    assert!(f.complete && f.violation.is_none(), "{:?}", f.violation);
}

#[test]
fn m18_a_ledger_in_recovery_is_collected() {
    let scope = Scope::new(3, 2).prompt().changes(0, 1).recoverers(2).with(|s| s.collects = true);
    broken("M18", "A", scope, |s| s.bookie_rules.collect_closed_only = false);
}

#[test]
fn m19_a_writer_lives_on_after_the_close_and_a_wiped_bookie_takes_its_add() {
    broken("M19", "T", Scope::new(3, 2).prompt().with(wiped), |s| s.bookie_rules.first_touch = false);
}

#[test]
fn m28_limbo_ends_while_the_ledger_is_not_closed() {
    let scope = Scope::new(3, 2).prompt().with(wiped).with(|s| s.limbo_ends = true);
    broken("M28", "TR", scope, |s| s.bookie_rules.limbo_until_closed = false);
}

#[test]
fn m31_entries_below_the_write_quorum_are_not_listed() {
    let scope = Scope::new(3, 2).prompt().with(|s| {
        s.writer_closes = true;
        s.check_under = true;
    });
    broken("M31", "U", scope, |s| s.meta_rules.under_lists = false);
}
