//! When the LAC of an open ledger is told to its bookies without an entry (1.7): an entry tells the LAC of the moment it was
//! encoded, so the last entries of a ledger that goes idle would stay invisible to whoever reads it from the bookies.

use std::time::Duration;

use tidemill_types::EntryId;

/// What one ledger's bookies know of its LAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplicitLac {
    /// The LAC in the newest entry that was sent.
    carried: EntryId,
    /// The highest one that was told explicitly.
    told: EntryId,
    /// A LAC that no entry carries, and since when it is the same.
    waiting: Option<(EntryId, Duration)>,
}

impl Default for ExplicitLac {
    fn default() -> Self {
        Self { carried: EntryId::NONE, told: EntryId::NONE, waiting: None }
    }
}

impl ExplicitLac {
    /// An entry was sent that carries this LAC.
    pub fn carries(&mut self, lac: EntryId) {
        self.carried = lac;
    }

    /// The LAC that is to be told now: none while it moves or while entries carry it.
    #[must_use]
    pub fn due(&mut self, lac: EntryId, now: Duration, delay: Duration) -> Option<EntryId> {
        if lac <= self.carried.max(self.told) {
            self.waiting = None;
            return None;
        }
        match self.waiting {
            Some((same, since)) if same == lac => {
                if now.saturating_sub(since) < delay {
                    return None;
                }
                self.told = lac;
                Some(lac)
            }
            _ => {
                self.waiting = Some((lac, now));
                None
            }
        }
    }

    /// Too few bookies took what was told: it is told again.
    pub fn failed(&mut self, lac: EntryId) {
        if self.told == lac {
            self.told = EntryId::NONE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(200);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_lac_that_stands_is_told_once() {
        let mut e = ExplicitLac::default();
        assert_eq!(e.due(EntryId::NONE, at(0), DELAY), None, "nothing to tell of an empty ledger");
        e.carries(EntryId(3));
        assert_eq!(e.due(EntryId(3), at(0), DELAY), None, "the entry tells it");
        assert_eq!(e.due(EntryId(4), at(10), DELAY), None, "it has just moved");
        assert_eq!(e.due(EntryId(5), at(150), DELAY), None, "and again: the time begins anew");
        assert_eq!(e.due(EntryId(5), at(349), DELAY), None);
        assert_eq!(e.due(EntryId(5), at(350), DELAY), Some(EntryId(5)));
        assert_eq!(e.due(EntryId(5), at(9_000), DELAY), None);
    }

    #[test]
    fn an_entry_that_carries_it_makes_telling_needless() {
        let mut e = ExplicitLac::default();
        assert_eq!(e.due(EntryId(0), at(0), DELAY), None);
        e.carries(EntryId(0));
        assert_eq!(e.due(EntryId(0), at(500), DELAY), None);
    }

    #[test]
    fn what_was_not_heard_is_told_again() {
        let mut e = ExplicitLac::default();
        assert_eq!(e.due(EntryId(0), at(0), DELAY), None);
        assert_eq!(e.due(EntryId(0), at(200), DELAY), Some(EntryId(0)));
        e.failed(EntryId(0));
        assert_eq!(e.due(EntryId(0), at(300), DELAY), Some(EntryId(0)));
    }
}
