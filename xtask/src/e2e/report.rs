//! What was done, how long it took, what was seen.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Deserialize;

/// The report of a run.
#[derive(Default)]
pub(super) struct Report {
    steps: Vec<(String, Duration, bool)>,
    seen: Vec<Line>,
}

/// What a test wrote down.
#[derive(Deserialize)]
struct Line {
    test: String,
    text: String,
}

impl Report {
    /// Does one step and notes how long it took.
    pub(super) fn step<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        println!("== {name}");
        let started = Instant::now();
        let done = work();
        self.steps.push((name.to_owned(), started.elapsed(), done.is_ok()));
        done.with_context(|| name.to_owned())
    }

    /// Takes in what the tests wrote down: one JSON object per line. Without a file they wrote nothing.
    pub(super) fn seen(&mut self, lines: &Path) -> anyhow::Result<()> {
        if !lines.exists() {
            return Ok(());
        }
        for line in fs::read_to_string(lines)?.lines() {
            self.seen
                .push(serde_json::from_str(line).with_context(|| format!("line {line:?} of the report"))?);
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nWhat was done")?;
        for (name, took, done) in &self.steps {
            let failed = if *done { "" } else { "  FAILED" };
            writeln!(f, "  {:>7.1} s  {name}{failed}", took.as_secs_f64())?;
        }
        let mut test = "";
        for line in &self.seen {
            if test.is_empty() {
                writeln!(f, "What was seen")?;
            }
            if line.test != test {
                writeln!(f, "  {}", line.test)?;
                test = &line.test;
            }
            writeln!(f, "    {}", line.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_what_was_seen_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lines");
        fs::write(&file, "{\"test\":\"a\",\"text\":\"1\"}\n{\"test\":\"a\",\"text\":\"2\"}\n").unwrap();
        let mut report = Report::default();
        report.step("good", || Ok(())).unwrap();
        assert!(report.step("bad", || -> anyhow::Result<()> { anyhow::bail!("why") }).is_err());
        report.seen(&file).unwrap();
        let shown = report.to_string();
        assert!(shown.contains("s  good\n") && shown.contains("s  bad  FAILED\n"), "{shown}");
        assert!(shown.ends_with("What was seen\n  a\n    1\n    2\n"), "{shown}");
    }
}
