//! Explores scopes of the ledger protocol and prints states and time: `model [limit in millions]`.

use std::{process::ExitCode, time::Instant};

use tidemill_sim::{
    explore::{Model, explore},
    gc::{Fault, Gc},
    model::{Ledger, Scope},
    repair::{RepairModel, RepairScope},
};

fn scopes() -> Vec<(&'static str, Scope)> {
    let small = |e: u8| Scope::new(2, 2).entries(e);
    let wide = || Scope::new(3, 2);
    let closing = |s: &mut Scope| {
        s.writer_closes = true;
        s.unknown_outcomes = 1;
    };
    vec![
        ("2/2/2, 1 entry", small(1)),
        ("2/2/2, 1 entry, changes 1+1", small(1).changes(1, 1)),
        ("2/2/2, 2 entries", small(2)),
        ("3/3/2, 1 entry", wide()),
        ("3/3/2, 1 entry, prompt", wide().prompt()),
        ("3/3/2, 1 entry, prompt, time-outs", wide().prompt().with(|s| s.timeouts = true)),
        ("3/3/2, 1 entry, prompt, 2 recoverers", wide().prompt().recoverers(2)),
        ("2/2/2, 1 entry, prompt, 2 recoverers, changes 0+1", small(1).prompt().recoverers(2).changes(0, 1)),
        ("2/2/2, 1 entry, prompt, 2 recoverers, changes 1+1", small(1).prompt().recoverers(2).changes(1, 1)),
        ("2/2/2, 2 entries, prompt, changes 0+1", small(2).prompt().changes(0, 1)),
        ("2/2/2, 2 entries, prompt, changes 1+1", small(2).prompt().changes(1, 1)),
        ("3/3/2, 1 entry, prompt, changes 1+0", wide().prompt().changes(1, 0)),
        ("3/3/2, 1 entry, prompt, changes 1+1", wide().prompt().changes(1, 1)),
        ("3/3/2, 1 entry, prompt, changes 2+0", wide().prompt().changes(2, 0)),
        ("3/3/2, 2 entries, prompt", wide().prompt().entries(2)),
        ("3/3/2, 2 entries, prompt, changes 1+0", wide().prompt().entries(2).changes(1, 0)),
        ("3/3/2, 1 entry, prompt, 2 recoverers, changes 0+1", wide().prompt().recoverers(2).changes(0, 1)),
        (
            "3/3/2, 1 entry, prompt, own sync, 1 crash",
            wide().prompt().with(|s| {
                s.async_sync = true;
                s.crashes = 1;
            }),
        ),
        ("2/2/2, 2 entries, prompt, writer closes, 1 unknown outcome", small(2).prompt().with(closing)),
        (
            "2/2/2, 1 entry, prompt, writer closes, 1 unknown outcome, changes 1+1",
            small(1).prompt().changes(1, 1).with(closing),
        ),
        (
            "3/3/2, 1 entry, prompt, writer closes, 1 unknown outcome, changes 1+0",
            wide().prompt().changes(1, 0).with(closing),
        ),
        (
            "3/3/2, 1 entry, prompt, 1 bookie wiped under its uuid (M6d)",
            wide().prompt().with(|s| s.wipes = 1),
        ),
        (
            "3/3/2, 1 entry, prompt, 1 bookie wiped, limbo ends, collection, changes 1+1",
            wide().prompt().changes(1, 1).with(|s| (s.wipes, s.limbo_ends, s.collects) = (1, true, true)),
        ),
    ]
}

/// Losses of bookies, repair, limbo, collection.
fn repairs() -> Vec<(&'static str, RepairScope)> {
    let scope = RepairScope::new;
    vec![
        (
            "repair, 2 copies, 3 losses, 1 crash, 1 unknown outcome, collection",
            scope().with(|s| (s.bookies, s.losses, s.crashes, s.unknowns, s.collects) = (5, 3, 1, 1, true)),
        ),
        (
            "repair, 2 copies, 2 limbos, 1 loss, 1 drain, 1 repair taken away, collection",
            scope().with(|s| (s.limbos, s.losses, s.drains, s.abandons, s.collects) = (2, 1, 1, 1, true)),
        ),
        (
            "repair, 3 copies unchecked, 1 loss, 1 silent member, 1 time-out, 1 repair taken away",
            scope().with(|s| {
                (s.members, s.copies, s.bookies) = (3, 3, 4);
                (s.lacking, s.losses, s.silences, s.time_outs, s.abandons) = (1, 1, 1, 1, 1);
            }),
        ),
        (
            "repair, 3 copies, 2 entries, 2 losses, 1 limbo, 1 drain, 1 unknown outcome, collection",
            scope().with(|s| {
                (s.members, s.copies, s.bookies, s.entries) = (3, 3, 6, 2);
                (s.losses, s.limbos, s.drains, s.unknowns, s.collects) = (2, 1, 1, 1, true);
            }),
        ),
    ]
}

/// Explores one scope and prints a line, and the trace of a violation. True: nothing broke.
#[expect(clippy::print_stdout, reason = "the output of a command")]
fn show<M: Model>(name: &str, model: &M, limit: usize) -> bool {
    let start = Instant::now();
    let f = explore(model, limit);
    let verdict = match (&f.violation, f.complete) {
        (Some((what, _)), _) => format!("BROKEN: {what}"),
        (None, true) => "holds".to_owned(),
        (None, false) => "cut, no violation".to_owned(),
    };
    println!(
        "{name}: {verdict}, {} states, depth {}, {:.1} s",
        f.states,
        f.depth,
        start.elapsed().as_secs_f64()
    );
    let whole = f.violation.is_none();
    for (n, step) in f.violation.map(|v| v.1).unwrap_or_default().iter().enumerate() {
        println!("  {:2}. {step}", n + 1);
    }
    whole
}

fn main() -> ExitCode {
    let millions: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(20);
    let limit = millions.saturating_mul(1_000_000);
    let mut whole = true;
    for (name, scope) in repairs() {
        whole &= show(name, &RepairModel(scope), limit);
    }
    for (name, scope) in scopes() {
        whole &= show(name, &Ledger(scope), limit);
    }
    whole &= show("collection, 2 ledgers, a quorum that forgets", &Gc::default(), limit);
    let wrong = Gc { faults: Vec::<Fault>::new(), wrong_reads: 1, ..Gc::default() };
    whole &= show("collection, 2 ledgers, a wrong read", &wrong, limit);
    if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
