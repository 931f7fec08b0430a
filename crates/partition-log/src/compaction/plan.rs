//! Whether a pass is due.

use tidemill_types::Offset;

/// A CLOSED ledger that a pass may take: every one of the chain but the last, and but the newest with the producers' state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of its first record.
    pub base: Offset,
    /// Offsets that it covers.
    pub span: u64,
    /// Bytes of its entries.
    pub bytes: u64,
    /// Written by a pass that knew all its keys.
    pub clean: bool,
}

/// When a pass is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Least share of dirty bytes, thousandths.
    pub min_dirty_permille: u16,
    /// Tombstones of the clean part have outlived their horizon.
    pub tombstones_due: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing yet.
    Wait,
    /// A pass over all pieces, of which so many are clean.
    Run {
        /// Clean ones, at the front.
        clean: usize,
    },
}

/// Clean pieces at the front: a clean one behind a dirty one was left by nobody, and counts as dirty.
#[must_use]
pub fn clean_prefix(pieces: &[Piece]) -> usize {
    pieces.iter().take_while(|p| p.clean).count()
}

/// Share of dirty bytes, thousandths; 0 without a byte.
#[must_use]
pub fn dirty_permille(pieces: &[Piece]) -> u16 {
    let all: u64 = pieces.iter().map(|p| p.bytes).sum();
    let clean: u64 = pieces.iter().take(clean_prefix(pieces)).map(|p| p.bytes).sum();
    let share = u128::from(all - clean) * 1_000 / u128::from(all.max(1));
    u16::try_from(share).unwrap_or(1_000)
}

/// Decides.
#[must_use]
pub fn decide(pieces: &[Piece], rule: Rule) -> Decision {
    let clean = clean_prefix(pieces);
    let dirty_records = pieces.iter().skip(clean).any(|p| p.span > 0);
    let due = dirty_records && dirty_permille(pieces) >= rule.min_dirty_permille;
    let tombstones = rule.tombstones_due && clean > 0;
    if due || tombstones { Decision::Run { clean } } else { Decision::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(of: &[(u64, bool)]) -> Vec<Piece> {
        of.iter().map(|&(bytes, clean)| Piece { base: Offset(0), span: bytes, bytes, clean }).collect()
    }

    const HALF: Rule = Rule { min_dirty_permille: 500, tombstones_due: false };

    #[test]
    fn a_pass_is_due_when_enough_is_dirty() {
        assert_eq!(decide(&[], HALF), Decision::Wait);
        assert_eq!(decide(&pieces(&[(10, false)]), HALF), Decision::Run { clean: 0 });
        assert_eq!(decide(&pieces(&[(100, true), (99, false)]), HALF), Decision::Wait);
        assert_eq!(decide(&pieces(&[(100, true), (100, false)]), HALF), Decision::Run { clean: 1 });
        assert_eq!(decide(&pieces(&[(100, true)]), HALF), Decision::Wait);
        assert_eq!(dirty_permille(&pieces(&[(300, true), (100, false)])), 250);
        // What stands behind a dirty ledger was not looked through together with it.
        assert_eq!(dirty_permille(&pieces(&[(100, false), (300, true)])), 1_000);
    }

    #[test]
    fn expired_tombstones_alone_are_a_reason() {
        let due = Rule { tombstones_due: true, ..HALF };
        assert_eq!(decide(&pieces(&[(100, true), (9, false)]), due), Decision::Run { clean: 1 });
        assert_eq!(decide(&pieces(&[(100, true)]), due), Decision::Run { clean: 1 });
    }

    #[test]
    fn a_ledger_without_records_is_no_reason() {
        let empty = Piece { base: Offset(0), span: 0, bytes: 10, clean: false };
        assert_eq!(decide(&[empty], HALF), Decision::Wait);
    }
}
