//! Non-fencing LAC read of a tailing reader (1.7): a lower bound, with QC answers.

use tidemill_types::{EntryId, quorum};

use super::FenceAnswer;

/// Collects answers of one ensemble.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LacRead {
    answers: Vec<Option<FenceAnswer>>,
    ack_quorum: usize,
}

impl LacRead {
    /// For an ensemble of `size` bookies.
    #[must_use]
    pub fn new(size: usize, ack_quorum: u8) -> Self {
        Self { answers: vec![None; size], ack_quorum: usize::from(ack_quorum) }
    }

    /// Takes an answer. `Ok(Some(lac))` once QC bookies told theirs, `Err(())` when they no longer can.
    ///
    /// # Errors
    /// [`LacUnknown`].
    pub fn answer(&mut self, index: usize, answer: FenceAnswer) -> Result<Option<EntryId>, LacUnknown> {
        if let Some(a) = self.answers.get_mut(index) {
            *a = Some(answer);
        }
        let lacs = self.answers.iter().flatten().filter_map(|a| match a {
            FenceAnswer::Confirmed { lac } => Some(*lac),
            FenceAnswer::Unknown(_) => None,
        });
        let (mut yes, mut max) = (0, EntryId::NONE);
        for lac in lacs {
            yes += 1;
            max = max.max(lac);
        }
        let no = self.answers.iter().flatten().count() - yes;
        let total = self.answers.len();
        match quorum::coverage(total, quorum::quorum_coverage(total, self.ack_quorum), yes, no) {
            quorum::Coverage::Reached => Ok(Some(max)),
            quorum::Coverage::Open => Ok(None),
            quorum::Coverage::Impossible => Err(LacUnknown),
        }
    }
}

/// Fewer than QC bookies told their LAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too few bookies told their last add confirmed")]
pub struct LacUnknown;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Unknown;

    #[test]
    fn needs_qc_answers_and_takes_the_highest() {
        let mut r = LacRead::new(3, 2);
        assert_eq!(r.answer(0, FenceAnswer::Confirmed { lac: EntryId(4) }), Ok(None));
        assert_eq!(r.answer(1, FenceAnswer::Unknown(Unknown::Closed)), Ok(None));
        assert_eq!(r.answer(2, FenceAnswer::Confirmed { lac: EntryId(2) }), Ok(Some(EntryId(4))));
        let mut r = LacRead::new(3, 2);
        assert_eq!(r.answer(0, FenceAnswer::Unknown(Unknown::Closed)), Ok(None));
        assert_eq!(r.answer(1, FenceAnswer::Unknown(Unknown::Closed)), Err(LacUnknown));
    }
}
