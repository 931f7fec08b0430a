//! Who wrote a batch, for exactly-once appends.

/// Identity and place of a batch in the series of an idempotent producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerFields {
    /// Producer id, from 0.
    pub id: i64,
    /// Epoch of the id, from 0.
    pub epoch: i16,
    /// Sequence of the first record, from 0; -1 in control batches only.
    pub base_sequence: i32,
}

impl ProducerFields {
    /// What the id, epoch and sequence fields of a batch without a producer hold.
    pub(crate) const NONE: Self = Self { id: -1, epoch: -1, base_sequence: -1 };

    /// Sequence of the last record of a batch whose last offset delta this is. Sequences wrap from 2^31 - 1 to 0
    /// (rule 2.1.5).
    #[must_use]
    pub fn last_sequence(&self, last_offset_delta: i32) -> i32 {
        if self.base_sequence < 0 {
            self.base_sequence
        } else {
            advance(self.base_sequence, last_offset_delta)
        }
    }

    /// Sequence that follows the batch whose last offset delta this is.
    #[must_use]
    pub fn next_sequence(&self, last_offset_delta: i32) -> i32 {
        if self.base_sequence < 0 {
            self.base_sequence
        } else {
            advance(self.last_sequence(last_offset_delta), 1)
        }
    }
}

fn advance(sequence: i32, by: i32) -> i32 {
    sequence.wrapping_add(by) & i32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_to_zero() {
        let at = |base_sequence| ProducerFields { id: 1, epoch: 0, base_sequence };
        assert_eq!(at(0).last_sequence(0), 0);
        assert_eq!(at(0).next_sequence(9), 10);
        assert_eq!(at(i32::MAX).last_sequence(0), i32::MAX);
        assert_eq!(at(i32::MAX).next_sequence(0), 0);
        assert_eq!(at(i32::MAX - 1).last_sequence(4), 2);
        assert_eq!(at(-1).next_sequence(0), -1);
    }
}
