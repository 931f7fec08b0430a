//! The table at the end of a run, and its closing line.

use std::fmt;

use super::run::Outcome;
use super::totals::Totals;

/// The outcomes of the steps that ran.
#[derive(Default)]
pub(super) struct Summary {
    steps: Vec<(&'static str, Outcome)>,
}

impl Summary {
    pub(super) fn add(&mut self, name: &'static str, outcome: Outcome) {
        self.steps.push((name, outcome));
    }

    /// Whether something ran and nothing failed.
    pub(super) fn passed(&self) -> bool {
        !self.steps.is_empty() && self.steps.iter().all(|(_, outcome)| outcome.passed())
    }
}

/// The last line is `N passed, N failed`, summed over the steps: continuous integration reads it.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sum = Totals::default();
        writeln!(f, "\n{:<16} {:>7} {:>7} {:>7} {:>9}", "step", "passed", "failed", "ignored", "seconds")?;
        for (name, outcome) in &self.steps {
            let Totals { passed, failed, ignored } = outcome.totals;
            let seconds = outcome.took.as_secs_f64();
            write!(f, "{name:<16} {passed:>7} {failed:>7} {ignored:>7} {seconds:>9.1}")?;
            match &outcome.why {
                Some(why) => writeln!(f, "  {why}")?,
                None => writeln!(f)?,
            }
            sum += outcome.totals;
        }
        writeln!(f, "\n{} passed, {} failed", sum.passed, sum.failed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcome(passed: u64, failed: u64) -> Outcome {
        Outcome {
            totals: Totals { passed, failed, ignored: 0 },
            took: Duration::from_millis(1500),
            why: None,
        }
    }

    #[test]
    fn the_closing_line_sums_over_the_steps() {
        let mut summary = Summary::default();
        summary.add("one", outcome(3, 0));
        assert!(summary.passed());
        summary.add("two", outcome(4, 1));
        assert!(!summary.passed());
        assert_eq!(summary.to_string().lines().last(), Some("7 passed, 1 failed"));
    }

    #[test]
    fn nothing_run_is_not_a_success() {
        assert!(!Summary::default().passed());
    }
}
