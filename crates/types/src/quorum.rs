//! Quorum arithmetic (ledger protocol 1.1): pure, answers with enums.

use serde::{Deserialize, Serialize};

/// Copies of an entry: the first version writes each entry to the whole ensemble (`E = Qw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replication {
    /// Copies sent: E = Qw, 1..=7.
    pub copies: u8,
    /// Copies waited for: Qa, 1..=copies.
    pub ack_quorum: u8,
}

impl Default for Replication {
    fn default() -> Self {
        Self { copies: 3, ack_quorum: 2 }
    }
}

/// What is known after some bookies answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Enough answers for the verdict.
    Reached,
    /// Not enough yet, but the outstanding answers could still complete it.
    Open,
    /// Can no longer be reached in this round.
    Impossible,
}

impl Replication {
    /// Largest ensemble that is supported.
    pub const MAX_COPIES: u8 = 7;

    /// Valid when `1 <= ack_quorum <= copies <= MAX_COPIES`.
    #[must_use]
    pub fn is_valid(self) -> bool {
        1 <= self.ack_quorum && self.ack_quorum <= self.copies && self.copies <= Self::MAX_COPIES
    }
}

/// Quorum coverage QC = (Qw - Qa) + 1: so many explicit negatives prove that an entry never reached Qa (R3).
#[must_use]
pub fn quorum_coverage(write_quorum: usize, ack_quorum: usize) -> usize {
    write_quorum.saturating_sub(ack_quorum) + 1
}

/// Ensemble coverage EC = (E - Qa) + 1: so many fenced bookies leave a writer without an ack quorum (R2).
#[must_use]
pub fn ensemble_coverage(ensemble: usize, ack_quorum: usize) -> usize {
    ensemble.saturating_sub(ack_quorum) + 1
}

/// Coverage after `yes` of `total` answered as needed and `no` answered otherwise, when `needed` are needed.
#[must_use]
pub fn coverage(total: usize, needed: usize, yes: usize, no: usize) -> Coverage {
    if yes >= needed {
        Coverage::Reached
    } else if total.saturating_sub(no) >= needed {
        Coverage::Open
    } else {
        Coverage::Impossible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brute force: with EC bookies fenced, every set of Qa bookies meets a fenced one; with EC - 1 some set does not.
    #[test]
    fn coverage_is_the_smallest_number_that_meets_every_ack_quorum() {
        for e in 1..=7usize {
            for qa in 1..=e {
                let meets_all = |k: usize| {
                    (0u32..1 << e).filter(|s| s.count_ones() as usize == k).all(|fenced| {
                        (0u32..1 << e)
                            .filter(|s| s.count_ones() as usize == qa)
                            .all(|acks| acks & fenced != 0)
                    })
                };
                assert!(meets_all(ensemble_coverage(e, qa)));
                assert!(!meets_all(ensemble_coverage(e, qa) - 1));
                assert_eq!(ensemble_coverage(e, qa), quorum_coverage(e, qa));
            }
        }
    }

    #[test]
    fn coverage_answers() {
        assert_eq!(coverage(3, 2, 2, 0), Coverage::Reached);
        assert_eq!(coverage(3, 2, 1, 1), Coverage::Open);
        assert_eq!(coverage(3, 2, 1, 2), Coverage::Impossible);
    }
}
