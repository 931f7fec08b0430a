//! The table: medians over the rounds, and how Tidemill stands to each.

use std::fmt::Write;

use super::{Results, SystemResults};
use crate::outcome::{Outcome, as_f64, median};

/// What is shown of a run, and whether more is better.
struct Column {
    what: &'static str,
    of: fn(&Outcome) -> Option<f64>,
    digits: usize,
    more_is_better: bool,
}

const RATE: Column = Column { what: "records/s", of: |o| Some(o.rate()), digits: 0, more_is_better: true };
const P50: Column = Column {
    what: "p50 ms",
    of: |o| o.printed.latency_us.map(|l| l.p50 / 1e3),
    digits: 2,
    more_is_better: false,
};
const P99: Column = Column {
    what: "p99 ms",
    of: |o| o.printed.latency_us.map(|l| l.p99 / 1e3),
    digits: 2,
    more_is_better: false,
};
const CPU: Column = Column {
    what: "server CPU s per million",
    of: |o| Some(o.cpu_per_million()),
    digits: 2,
    more_is_better: false,
};
const CLIENT: Column = Column {
    what: "client CPU s per million",
    of: |o| (o.all_records > 0.0).then(|| o.client_cpu_seconds / o.all_records * 1e6),
    digits: 2,
    more_is_better: false,
};
const MEMORY: Column = Column {
    what: "peak memory of the servers, MiB",
    of: |o| Some(o.peak_rss_bytes / f64::from(1 << 20)),
    digits: 0,
    more_is_better: false,
};

/// As Markdown.
pub(crate) fn table(results: &Results) -> String {
    let mut out = String::new();
    let _infallible = writeln!(
        out,
        "{}; {}; load average {} at the beginning. `{}`\n",
        results.date, results.machine, results.load, results.command
    );
    let names: Vec<&str> = results.systems.iter().map(|s| s.name.as_str()).collect();
    let _infallible = writeln!(out, "| work | figure | {} |", names.join(" | "));
    let _infallible = writeln!(out, "| --- | --- |{}", " ---: |".repeat(names.len()));
    for work in &results.work {
        let columns: &[Column] = if work.starts_with("write") {
            &[RATE, CPU, CLIENT, MEMORY]
        } else if work.starts_with("read") {
            &[RATE, CPU, CLIENT]
        } else {
            &[P50, P99, CPU]
        };
        for c in columns {
            row(&mut out, results, work, c);
        }
    }
    let memory = |s: &SystemResults| median(s.idle_rss_bytes.iter().copied()).map(|b| b / f64::from(1 << 20));
    plain(&mut out, results, "memory of the idle servers, MiB", memory, 0);
    plain(&mut out, results, "start, s", |s| median(s.start_seconds.iter().copied()), 2);
    out.push_str("\nMedians. In brackets: how many times better (above 1) or worse Tidemill is.\n\n");
    for s in &results.systems {
        let settings = s.runs.values().flatten().next().map_or("", |o| o.settings.as_str());
        let synced = if s.synced { "synced" } else { "not synced" };
        let _infallible = writeln!(out, "- {} ({synced} before the acknowledgement): {settings}", s.name);
        for f in &s.failures {
            let _infallible = writeln!(out, "  - failed: {}", f.lines().next().unwrap_or_default());
        }
        if s.runs.values().flatten().any(|o| o.cut_short) {
            out.push_str("  - a run was cut short at the disk cap\n");
        }
    }
    for (name, why) in &results.missing {
        let _infallible = writeln!(out, "- {name}: missing: {}", why.lines().next().unwrap_or_default());
    }
    if !results.limits.is_empty() {
        out.push_str("\n| limit of the machine | MB/s | p50 us | p99 us |\n| --- | ---: | ---: | ---: |\n");
        for l in &results.limits {
            let us = |v: Option<f64>| v.map_or_else(String::new, |v| format!("{v:.0}"));
            let mb = l.bytes_per_second / 1e6;
            let _infallible = writeln!(out, "| {} | {mb:.0} | {} | {} |", l.name, us(l.p50_us), us(l.p99_us));
        }
    }
    out
}

fn row(out: &mut String, results: &Results, work: &str, c: &Column) {
    let value = |s: &SystemResults| median(s.runs.get(work).into_iter().flatten().filter_map(c.of));
    let ours = results.systems.first().and_then(value);
    let cells: Vec<String> = results
        .systems
        .iter()
        .enumerate()
        .map(|(i, s)| {
            let Some(v) = value(s) else { return "-".to_owned() };
            let shown = number(v, c.digits);
            match ours {
                Some(o) if i > 0 && v > 0.0 && o > 0.0 => {
                    let ratio = if c.more_is_better { o / v } else { v / o };
                    format!("{shown} ({ratio:.2})")
                }
                _ => shown,
            }
        })
        .collect();
    let runs = results.systems.first().and_then(|s| s.runs.get(work)).map_or(0, Vec::len);
    let _infallible =
        writeln!(out, "| {work} (n={}) | {} | {} |", as_f64(runs as u64), c.what, cells.join(" | "));
}

fn plain(
    out: &mut String,
    results: &Results,
    what: &str,
    of: impl Fn(&SystemResults) -> Option<f64>,
    digits: usize,
) {
    let cells: Vec<String> =
        results.systems.iter().map(|s| of(s).map_or_else(|| "-".to_owned(), |v| number(v, digits))).collect();
    let _infallible = writeln!(out, "| {what} | | {} |", cells.join(" | "));
}

/// With a space between thousands.
fn number(v: f64, digits: usize) -> String {
    let text = format!("{v:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) && c.is_ascii_digit() {
            out.push(' ');
        }
        out.push(c);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Printed;

    fn system(name: &str, records: u64) -> SystemResults {
        let printed = Printed { records, seconds: 1.0, ..Printed::default() };
        let o = Outcome { printed, all_records: 1e6, server_cpu_seconds: 0.5, ..Outcome::default() };
        let mut s = SystemResults::new(name.to_owned(), true);
        s.runs.insert("write 100 B, 8 partitions".to_owned(), vec![o]);
        s
    }

    #[test]
    fn ratios_say_how_much_better_we_are() {
        let results = Results {
            machine: "m".into(),
            date: "d".into(),
            load: "0".into(),
            command: "c".into(),
            work: vec!["write 100 B, 8 partitions".into()],
            systems: vec![system("Tidemill", 2_000_000), system("Peer", 500_000)],
            missing: vec![("Other".into(), "not there".into())],
            limits: Vec::new(),
        };
        let t = table(&results);
        assert!(t.contains("| records/s | 2 000 000 | 500 000 (4.00) |"), "{t}");
        assert!(t.contains("| 0.50 | 0.50 (1.00) |") && t.contains("Other: missing: not there"), "{t}");
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!(number(1_234_567.0, 0), "1 234 567");
        assert_eq!(number(999.25, 2), "999.25");
        assert_eq!(number(12_345.6, 1), "12 345.6");
    }
}
