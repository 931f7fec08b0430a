//! Repair under losses, limbo, collection, drains, crashes and unknown outcomes (R20, R22, R23): with every rule on nothing
//! breaks, with one off the checker finds what it protects from.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use tidemill_sim::{
    explore::{Found, explore},
    repair::{RepairModel, RepairScope},
};

const LIMIT: usize = 3_000_000;

fn run(name: &str, scope: RepairScope) -> Found {
    let f = explore(&RepairModel(scope), LIMIT);
    println!("{name}: {} states, depth {}", f.states, f.depth);
    if let Some((what, steps)) = &f.violation {
        println!("  {what}");
        for (n, s) in steps.iter().enumerate() {
            println!("  {:2}. {s}", n + 1);
        }
    }
    f
}

fn holds(name: &str, scope: RepairScope) {
    let f = run(name, scope);
    assert!(f.violation.is_none(), "{name}: {:#?}", f.violation);
    assert!(f.complete, "{name}: cut at {} states", f.states);
}

fn broken(name: &str, invariants: &str, scope: RepairScope, off: impl FnOnce(&mut RepairScope)) {
    let on = scope.clone();
    let f = run(name, scope.with(off));
    let (what, steps) = f.violation.expect("the rule is off, a violation has to be found");
    assert!(invariants.contains(&what[..1]), "{name}: {what}");
    assert!(!steps.is_empty());
    let same = explore(&RepairModel(on), f.states);
    assert!(same.violation.is_none(), "{name}: broken with the rule on: {:?}", same.violation);
}

fn drained() -> RepairScope {
    RepairScope::new().with(|s| s.drains = 1)
}

/// Entry 0 has Qa of three copies, nobody looked yet; one bookie is lost.
fn unchecked() -> RepairScope {
    RepairScope::new().with(|s| {
        (s.members, s.copies, s.bookies) = (3, 3, 4);
        (s.lacking, s.losses) = (1, 1);
    })
}

#[test]
fn losses_crashes_and_unknown_outcomes() {
    holds(
        "3 losses",
        RepairScope::new().with(|s| {
            (s.bookies, s.losses, s.crashes, s.unknowns, s.collects) = (5, 3, 1, 1, true);
        }),
    );
}

#[test]
fn limbo_of_members_and_targets() {
    holds(
        "limbo",
        RepairScope::new().with(|s| {
            (s.limbos, s.losses, s.drains, s.abandons, s.collects) = (2, 1, 1, 1, true);
        }),
    );
}

#[test]
fn unchecked_ledgers_with_silent_members() {
    holds(
        "unchecked",
        unchecked().with(|s| {
            (s.silences, s.time_outs, s.abandons) = (1, 1, 1);
        }),
    );
}

#[test]
fn ledgers_that_grow() {
    holds(
        "growing",
        RepairScope::new().with(|s| {
            (s.copies, s.bookies, s.entries) = (3, 4, 2);
            (s.losses, s.crashes, s.collects) = (1, 1, true);
        }),
    );
}

#[test]
fn m29_the_target_was_in_limbo_since_it_was_chosen() {
    let scope = drained().with(|s| s.limbos = 1);
    broken("M29", "FR", scope, |s| s.world_rules.limbo_count = false);
}

#[test]
fn m30_a_listing_answered_between_the_second_look_and_the_delete() {
    let scope = drained().with(|s| (s.collects, s.abandons) = (true, 1));
    broken("M30", "FR", scope, |s| s.world_rules.listing_waits = false);
}

#[test]
fn a_collection_that_does_not_see_the_repair() {
    let scope = drained().with(|s| s.collects = true);
    broken("repair protects", "FR", scope, |s| s.world_rules.repair_protects = false);
}

#[test]
fn a_swap_without_the_version() {
    let scope = drained().with(|s| (s.collects, s.abandons, s.unknowns) = (true, 1, 1));
    broken("no version at the swap", "FR", scope, |s| s.world_rules.version = false);
}

#[test]
fn what_was_copied_before_the_version_moved_is_trusted() {
    let scope = drained().with(|s| (s.collects, s.abandons) = (true, 1));
    broken("not listed again", "FR", scope, |s| s.rules.list_again = false);
}

#[test]
fn a_swap_clears_what_nobody_looked_at() {
    broken("swap clears", "F", unchecked(), |s| s.world_rules.swap_keeps_marks = false);
}

#[test]
fn a_silent_member_is_skipped() {
    let scope = unchecked().with(|s| (s.losses, s.silences) = (0, 1));
    broken("silent member", "F", scope, |s| s.look_rules.every_member_answers = false);
}

#[test]
fn a_negative_of_one_member_lets_the_entry_be_skipped() {
    let scope = unchecked().with(|s| s.drains = 1);
    broken("gaps", "FR", scope, |s| s.rules.no_gaps = false);
}

#[test]
fn an_unknown_answer_lets_the_entry_be_skipped() {
    let scope = drained().with(|s| s.time_outs = 1);
    broken("unknown is negative", "FR", scope, |s| s.rules.unknown_is_not_negative = false);
}

#[test]
fn copies_are_encoded_anew() {
    let scope = drained().with(|s| s.entries = 2);
    broken("not verbatim", "S", scope, |s| s.rules.same_bytes = false);
}

#[test]
fn a_bookie_that_is_needed_is_retired() {
    broken("retired", "PR", drained(), |s| s.world_rules.retire_unnamed_only = false);
}
