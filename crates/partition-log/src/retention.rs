//! What retention takes of a partition: whole ledgers from the front of its chain. Pure, no clock, no I/O.
//!
//! ```text
//!   closed ledgers, in order                 open ledger
//!   | expired | expired |  kept  |  kept  |  kept        |
//!                       ^ the new log start
//! ```
//! A ledger goes by *size* when what is behind it still has the bytes that the topic keeps, by *time* when its last record is
//! older than the topic keeps. So with a limit of `n` bytes a partition has at least its newest `n` bytes and, once a pass has
//! run, less than `n` and one ledger. The newest `state` of the producers is never trimmed (2.1 rule 6): before the last ledger
//! that has records goes, another one is opened.

use tidemill_types::Offset;

/// A closed ledger of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of its first record.
    pub base: Offset,
    /// Its records.
    pub records: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Append time of its last record, ms; `None`: not read yet.
    pub last_append_ms: Option<i64>,
}

/// The open ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPiece {
    /// Offset of its first record.
    pub base: Offset,
    /// Its bytes so far.
    pub bytes: u64,
    /// A complete snapshot of the producers' state is acknowledged in it.
    pub has_state: bool,
}

/// What a topic keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// So many bytes; `None`: all.
    pub bytes: Option<u64>,
    /// A ledger whose last record has an append time at or below this is expired, ms; `None`: none is.
    pub expired_at: Option<i64>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Keep,
    /// Read the last append time of this piece and ask again.
    NeedTime(usize),
    /// Everything that has records is expired: a ledger with the producers' state is needed first.
    OpenFirst,
    /// The log starts here: the base of a ledger, or the end of the last closed one.
    TrimTo(Offset),
}

/// Decides. `pieces` in the order of the chain.
#[must_use]
pub fn decide(pieces: &[Piece], open: Option<OpenPiece>, rule: Rule, log_start: Offset) -> Decision {
    let mut left: u64 = pieces.iter().map(|p| p.bytes).sum::<u64>() + open.map_or(0, |o| o.bytes);
    let mut cut = 0;
    for (i, p) in pieces.iter().enumerate() {
        let rest = left.saturating_sub(p.bytes);
        let by_size = rule.bytes.is_some_and(|limit| rest >= limit);
        let by_time = match (rule.expired_at, p.last_append_ms) {
            _ if by_size => false,
            (None, _) => false,
            // Without records it has no time and keeps nothing.
            (Some(_), _) if p.records == 0 => true,
            (Some(expired), Some(last)) => last <= expired,
            (Some(_), None) => return Decision::NeedTime(i),
        };
        if !by_size && !by_time {
            break;
        }
        left = rest;
        cut = i + 1;
    }
    let Some(last) = cut.checked_sub(1).and_then(|i| pieces.get(i)) else { return Decision::Keep };
    let to = Offset(last.base.0.saturating_add_unsigned(last.records));
    if to <= log_start {
        return Decision::Keep;
    }
    let records_left = pieces.get(cut..).unwrap_or_default().iter().any(|p| p.records > 0);
    if !records_left && !open.is_some_and(|o| o.has_state) {
        return Decision::OpenFirst;
    }
    Decision::TrimTo(to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of `(records, bytes)`; the record with offset `n` was appended at time `n`.
    fn chain(of: &[(u64, u64)]) -> Vec<Piece> {
        let mut base = 0i64;
        let piece = |&(records, bytes): &(u64, u64)| {
            let p = Piece { base: Offset(base), records, bytes, last_append_ms: None };
            base += i64::try_from(records).unwrap();
            p
        };
        of.iter().map(piece).collect()
    }

    fn end(pieces: &[Piece]) -> Offset {
        pieces.last().map_or(Offset(0), |p| Offset(p.base.0 + i64::try_from(p.records).unwrap()))
    }

    fn open(pieces: &[Piece], bytes: u64, has_state: bool) -> OpenPiece {
        OpenPiece { base: end(pieces), bytes, has_state }
    }

    /// Answers the questions after times.
    fn decided(mut pieces: Vec<Piece>, open: Option<OpenPiece>, rule: Rule, start: Offset) -> Decision {
        loop {
            match decide(&pieces, open, rule, start) {
                Decision::NeedTime(i) => {
                    let p = &mut pieces[i];
                    assert_eq!(p.last_append_ms, None, "asked twice");
                    p.last_append_ms = Some(p.base.0 + i64::try_from(p.records).unwrap() - 1);
                }
                d => return d,
            }
        }
    }

    const BY_SIZE: fn(u64) -> Rule = |n| Rule { bytes: Some(n), expired_at: None };
    const BY_TIME: fn(i64) -> Rule = |t| Rule { bytes: None, expired_at: Some(t) };

    #[test]
    fn a_ledger_goes_when_the_rest_suffices() {
        let c = chain(&[(10, 100), (10, 100), (10, 100)]);
        let o = Some(open(&c, 50, true));
        assert_eq!(decided(c.clone(), o, BY_SIZE(251), Offset(0)), Decision::Keep);
        assert_eq!(decided(c.clone(), o, BY_SIZE(250), Offset(0)), Decision::TrimTo(Offset(10)));
        assert_eq!(decided(c.clone(), o, BY_SIZE(50), Offset(0)), Decision::TrimTo(Offset(30)));
        assert_eq!(decided(c, o, Rule::default(), Offset(0)), Decision::Keep);
    }

    #[test]
    fn a_ledger_goes_when_its_last_record_is_too_old() {
        let c = chain(&[(10, 100), (10, 100)]);
        let o = Some(open(&c, 0, true));
        assert_eq!(decided(c.clone(), o, BY_TIME(8), Offset(0)), Decision::Keep);
        assert_eq!(decided(c.clone(), o, BY_TIME(9), Offset(0)), Decision::TrimTo(Offset(10)));
        assert_eq!(decided(c, o, BY_TIME(99), Offset(0)), Decision::TrimTo(Offset(20)));
    }

    #[test]
    fn the_newest_state_is_never_trimmed() {
        let c = chain(&[(10, 100), (0, 10)]);
        // The second one is empty: nobody says that its state is complete.
        assert_eq!(decided(c.clone(), None, BY_TIME(99), Offset(0)), Decision::OpenFirst);
        let unfinished = Some(open(&c, 10, false));
        assert_eq!(decided(c.clone(), unfinished, BY_TIME(99), Offset(0)), Decision::OpenFirst);
        assert_eq!(
            decided(c.clone(), Some(open(&c, 10, true)), BY_TIME(99), Offset(0)),
            Decision::TrimTo(Offset(10))
        );
        // What has been trimmed already asks for nothing.
        assert_eq!(decided(c, None, BY_TIME(99), Offset(10)), Decision::Keep);
    }

    fn pieces() -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::vec((0u64..20, 0u64..1_000), 0..12)
    }

    proptest! {
        /// Whole ledgers, never beyond the end, never back; and what stays is at least what the topic keeps and less than
        /// that and one ledger.
        #[test]
        fn size_is_kept_within_one_ledger(of in pieces(), open_bytes in 0u64..500, limit in 1u64..5_000, start in 0i64..60) {
            let c = chain(&of);
            let start = Offset(start.min(end(&c).0));
            let o = open(&c, open_bytes, true);
            let all: u64 = c.iter().map(|p| p.bytes).sum::<u64>() + open_bytes;
            let d = decided(c.clone(), Some(o), BY_SIZE(limit), start);
            let to = match d {
                Decision::TrimTo(to) => { prop_assert!(to > start && to <= end(&c)); to }
                Decision::Keep => start,
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert!(to == start || to == end(&c) || c.iter().any(|p| p.base == to), "a whole ledger");
            let stays: Vec<&Piece> = c.iter().filter(|p| p.base.0 + i64::try_from(p.records).unwrap() > to.0).collect();
            let left = stays.iter().map(|p| p.bytes).sum::<u64>() + open_bytes;
            // Empty ledgers keep bytes without keeping records.
            let empty: u64 = c.iter().filter(|p| p.records == 0).map(|p| p.bytes).sum();
            prop_assert!(left + empty >= limit.min(all) || d == Decision::Keep);
            if let (Decision::TrimTo(_), Some(first)) = (d, stays.first()) {
                prop_assert!(left - first.bytes < limit, "one ledger more than needed stays at most");
            }
        }

        /// No record goes before its time, and every whole ledger that is expired goes.
        #[test]
        fn time_takes_only_what_is_expired(of in pieces(), expired in -1i64..250) {
            let c = chain(&of);
            let d = decided(c.clone(), Some(open(&c, 0, true)), BY_TIME(expired), Offset(0));
            let to = if let Decision::TrimTo(to) = d { to } else { Offset(0) };
            prop_assert!(to.0 <= (expired + 1).max(0), "the record before {to} was appended at {}", to.0 - 1);
            let next = c.iter().find(|p| p.records > 0 && p.base >= to);
            prop_assert!(next.is_none_or(|p| p.base.0 + i64::try_from(p.records).unwrap() - 1 > expired));
        }

        /// A pass after a pass finds nothing, and a stricter rule never keeps more.
        #[test]
        fn passes_agree(of in pieces(), limit in 1u64..5_000, less in 0u64..1_000, expired in -1i64..250) {
            let c = chain(&of);
            let o = Some(open(&c, 0, true));
            let start = |d| if let Decision::TrimTo(to) = d { to } else { Offset(0) };
            let rule = Rule { bytes: Some(limit), expired_at: Some(expired) };
            let first = start(decided(c.clone(), o, rule, Offset(0)));
            let stay: Vec<Piece> = c.iter().copied().filter(|p| p.base >= first).collect();
            prop_assert_eq!(decided(stay, o, rule, first), Decision::Keep);
            let stricter = Rule { bytes: Some(limit.saturating_sub(less).max(1)), expired_at: Some(expired + 3) };
            prop_assert!(start(decided(c, o, stricter, Offset(0))) >= first);
        }
    }
}
