//! Test counts, read from the closing lines of Rust's test harness.

use std::ops::AddAssign;

/// How many tests passed, failed and were ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
}

impl Totals {
    /// The counts of a line such as
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`;
    /// nothing for any other line.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (_verdict, counts) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
        let count = |word: &str| -> Option<u64> {
            counts.split("; ").find_map(|part| part.strip_suffix(word)?.trim_end().parse().ok())
        };
        Some(Self { passed: count("passed")?, failed: count("failed")?, ignored: count("ignored")? })
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_counted() {
        let good = "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 1 filtered out; finished in 0.01s\n";
        assert_eq!(Totals::parse(good), Some(Totals { passed: 12, failed: 0, ignored: 3 }));
        let bad = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.10s";
        assert_eq!(Totals::parse(bad), Some(Totals { passed: 1, failed: 2, ignored: 0 }));
    }

    #[test]
    fn other_lines_are_not() {
        for line in ["", "test result: ok", "test a::b ... ok", "12 passed; 0 failed; 3 ignored"] {
            assert_eq!(Totals::parse(line), None, "{line}");
        }
    }

    #[test]
    fn counts_add_up() {
        let mut sum = Totals { passed: 1, failed: 2, ignored: 3 };
        sum += Totals { passed: 10, failed: 20, ignored: 30 };
        assert_eq!(sum, Totals { passed: 11, failed: 22, ignored: 33 });
    }
}
