//! Ledgers that writers keep on fewer bookies than wanted, as brokers tell with their renewals. Pure.

use std::{collections::BTreeMap, time::Duration};

use tidemill_types::MemberId;

/// What was told longer ago does not count: its broker is gone, or does not renew.
const FRESH: Duration = Duration::from_secs(10);

/// The last word of each broker.
#[derive(Debug, Default)]
pub(crate) struct Degraded {
    told: BTreeMap<MemberId, (u32, Duration)>,
}

impl Degraded {
    /// A broker's renewal.
    pub(crate) fn heard(&mut self, broker: MemberId, ledgers: u32, now: Duration) {
        self.told.insert(broker, (ledgers, now));
    }

    /// Forgets all: another term.
    pub(crate) fn clear(&mut self) {
        self.told.clear();
    }

    /// The brokers heard of lately, those without a degraded ledger included.
    pub(crate) fn fresh(&self, now: Duration) -> Vec<(MemberId, u32)> {
        self.told
            .iter()
            .filter(|(_, (_, at))| now.saturating_sub(*at) <= FRESH)
            .map(|(id, (n, _))| (*id, *n))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_long_ago_does_not_count() {
        let (a, b) = (MemberId(uuid::Uuid::from_u128(1)), MemberId(uuid::Uuid::from_u128(2)));
        let s = Duration::from_secs;
        let mut d = Degraded::default();
        d.heard(a, 3, s(0));
        d.heard(b, 0, s(5));
        assert_eq!(d.fresh(s(9)), [(a, 3), (b, 0)]);
        assert_eq!(d.fresh(s(11)), [(b, 0)]);
        d.clear();
        assert_eq!(d.fresh(s(11)), []);
    }
}
