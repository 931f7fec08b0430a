//! Consumer groups: with every rule on nothing breaks; with one off the model finds what it protects from.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use tidemill_group::Rules;
use tidemill_sim::{
    explore::{Found, explore},
    group::{GroupModel, GroupScope},
};

const LIMIT: usize = 400_000;

fn run(name: &str, scope: GroupScope) -> Found {
    let f = explore(&GroupModel(scope), LIMIT);
    println!("{name}: {} states, depth {}, complete {}", f.states, f.depth, f.complete);
    if let Some((what, steps)) = &f.violation {
        println!("  {what}");
        for (n, s) in steps.iter().enumerate() {
            println!("  {:2}. {s}", n + 1);
        }
    }
    f
}

fn holds(name: &str, scope: GroupScope) {
    let f = run(name, scope);
    assert!(f.violation.is_none(), "{name}: {:#?}", f.violation);
    assert!(f.complete, "{name}: cut at {} states", f.states);
}

/// The invariant breaks; with the rule on it does not within the same number of states.
fn broken(name: &str, invariants: &str, scope: GroupScope, off: impl FnOnce(&mut GroupScope)) {
    let on = scope.clone();
    let f = run(name, scope.with(off));
    let (what, _) = f.violation.expect("the rule is off, a violation has to be found");
    assert!(invariants.contains(&what[..1]), "{name}: {what}");
    let same = explore(&GroupModel(on), f.states);
    assert!(same.violation.is_none(), "{name}: broken with the rule on: {:?}", same.violation);
}

fn off(change: impl FnOnce(&mut Rules)) -> impl FnOnce(&mut GroupScope) {
    move |s| change(&mut s.rules)
}

#[test]
fn two_members_join_and_share() {
    holds("share", GroupScope::small().with(|s| s.partitions = 2));
}

#[test]
fn a_member_is_removed_and_comes_back() {
    holds(
        "expiry",
        GroupScope::small().with(|s| {
            s.beats = 1;
            s.joins = 3;
            s.expiries = 1;
        }),
    );
}

#[test]
fn the_coordinator_fails_over() {
    holds(
        "fail-over",
        GroupScope::small().with(|s| {
            s.partitions = 2;
            s.fail_overs = 1;
        }),
    );
}

#[test]
fn messages_come_twice_and_members_commit() {
    holds(
        "twice",
        GroupScope::small().with(|s| {
            s.beats = 1;
            s.commits = 1;
            s.twice = 1;
        }),
    );
}

#[test]
fn a_grant_that_does_not_wait_is_found() {
    broken("grant", "OH", GroupScope::small().with(|s| s.partitions = 2), off(|r| r.grants_wait = false));
}

#[test]
fn a_confirmation_of_another_revision_is_found() {
    broken(
        "revision",
        "OH",
        GroupScope::small().with(|s| s.partitions = 2),
        off(|r| r.confirmations_name_their_revision = false),
    );
}

#[test]
fn a_repeated_join_that_counts_as_a_new_one_is_found() {
    broken(
        "repeated join",
        "OH",
        GroupScope::small().with(|s| {
            s.partitions = 2;
            s.beats = 1;
            s.twice = 1;
        }),
        off(|r| r.repeated_joins_are_known = false),
    );
}

#[test]
fn a_farewell_of_an_earlier_life_is_found() {
    broken(
        "earlier life",
        "L",
        GroupScope::small().with(|s| {
            s.beats = 0;
            s.leaves = 1;
        }),
        off(|r| r.earlier_lives_are_void = false),
    );
}

#[test]
fn a_commit_of_an_earlier_grant_is_found() {
    broken(
        "earlier grant",
        "C",
        GroupScope::small().with(|s| {
            s.joins = 3;
            s.beats = 1;
            s.commits = 1;
        }),
        off(|r| {
            r.commits_belong_to_a_grant = false;
            r.earlier_lives_are_void = false;
        }),
    );
}

#[test]
fn a_coordinator_that_forgets_its_members_is_found() {
    broken(
        "forgotten members",
        "OHP",
        GroupScope::small().with(|s| {
            s.joins = 3;
            s.fail_overs = 1;
        }),
        |s| s.members_are_in_the_log = false,
    );
}
