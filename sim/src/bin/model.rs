//! Explores scopes of the ledger protocol and prints states and time: `model [limit in millions]`.

use std::time::Instant;

use tidemill_sim::{
    explore::{Found, explore},
    gc::{Fault, Gc},
    model::{Ledger, Scope},
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
    ]
}

fn main() {
    let millions: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(20);
    let limit = millions.saturating_mul(1_000_000);
    for (name, scope) in scopes() {
        print(name, || explore(&Ledger(scope), limit));
    }
    print("collection, 2 ledgers, a quorum that forgets", || explore(&Gc::default(), limit));
    let wrong = Gc { faults: Vec::<Fault>::new(), wrong_reads: 1, ..Gc::default() };
    print("collection, 2 ledgers, a wrong read", || explore(&wrong, limit));
}

#[expect(clippy::print_stdout, reason = "the output of a command")]
fn print(name: &str, explore: impl FnOnce() -> Found) {
    let start = Instant::now();
    let f = explore();
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
    for (n, step) in f.violation.map(|v| v.1).unwrap_or_default().iter().enumerate() {
        println!("  {:2}. {step}", n + 1);
    }
}
