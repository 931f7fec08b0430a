//! Bookies to ledgers: across zones, more often where more is free, spread by a hint.

use std::collections::BTreeMap;

use tidemill_types::{BookieId, Member, Replication};

/// Fewer bookies may be named than are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{writable} bookies are writable, {needed} are needed")]
pub struct Shortage {
    /// How many are needed.
    pub needed: usize,
    /// How many could be named.
    pub writable: usize,
}

/// Chooses the ensemble of a new ledger.
///
/// Only bookies that are `rw` and have a live session are named, none of `exclude`; those that announced a restart only
/// when there are not enough others. No two share a zone while enough zones have one to offer. Among the rest, the
/// share of the ledgers that a bookie gets follows its free space; `hint` (say, the partition and epoch in one number)
/// draws: the same input gives the same ensemble.
///
/// With `allow_fewer`, a shortage is answered with what there is, never below the ack quorum (R28).
///
/// # Errors
/// [`Shortage`] when fewer than `copies` can be named, or than the ack quorum with `allow_fewer`.
pub fn choose_ensemble(
    bookies: &[Member],
    replication: Replication,
    exclude: &[BookieId],
    hint: u64,
    allow_fewer: bool,
) -> Result<Vec<BookieId>, Shortage> {
    let copies = usize::from(replication.copies);
    let needed = if allow_fewer { usize::from(replication.ack_quorum) } else { copies };
    let mut pool = Pool::new(bookies, &[], exclude, hint);
    let writable = pool.candidates.len();
    if writable < needed {
        return Err(Shortage { needed, writable });
    }
    Ok(std::iter::from_fn(|| pool.draw()).take(copies).collect())
}

/// Chooses the bookie that takes the place of a failed one beside those that stay.
///
/// As [`choose_ensemble`]; neither one of `staying` nor one of `exclude` (the failed ones, the target of a repair) is
/// chosen, and a zone that none of the staying is in comes first. For several places call it again with the choice
/// added to `staying`.
///
/// # Errors
/// [`Shortage`] when there is no spare.
pub fn choose_replacement(
    bookies: &[Member],
    staying: &[BookieId],
    exclude: &[BookieId],
    hint: u64,
) -> Result<BookieId, Shortage> {
    Pool::new(bookies, staying, exclude, hint).draw().ok_or(Shortage { needed: 1, writable: 0 })
}

/// Bookies that may be named, best draw first, and how often each zone is taken.
struct Pool<'a> {
    candidates: Vec<&'a Member>,
    taken: BTreeMap<&'a str, usize>,
}

impl<'a> Pool<'a> {
    fn new(bookies: &'a [Member], staying: &[BookieId], exclude: &[BookieId], hint: u64) -> Self {
        let mut taken = BTreeMap::new();
        for m in bookies.iter().filter(|m| staying.contains(&m.id)) {
            *taken.entry(m.zone.as_str()).or_insert(0) += 1;
        }
        let mut candidates: Vec<_> = bookies
            .iter()
            .filter(|m| m.is_writable_bookie() && m.session.is_some())
            .filter(|m| !staying.contains(&m.id) && !exclude.contains(&m.id))
            .map(|m| (m.restarting, draw(m, hint), m))
            .collect();
        candidates
            .sort_by(|a, b| (a.0.cmp(&b.0)).then(a.1.total_cmp(&b.1)).then_with(|| a.2.id.cmp(&b.2.id)));
        candidates.dedup_by_key(|(_, _, m)| m.id);
        Self { candidates: candidates.into_iter().map(|(_, _, m)| m).collect(), taken }
    }

    /// The best draw of the zones that are taken least.
    fn draw(&mut self) -> Option<BookieId> {
        let zone_of = |m: &Member| self.taken.get(m.zone.as_str()).copied().unwrap_or(0);
        let (i, _) = self.candidates.iter().enumerate().min_by_key(|(i, m)| (zone_of(m), *i))?;
        let m = self.candidates.remove(i);
        *self.taken.entry(m.zone.as_str()).or_insert(0) += 1;
        Some(m.id)
    }
}

/// Weighted rendezvous hashing: an exponential draw with the free space as its rate; the lowest wins. A bookie that
/// comes or goes changes only the ensembles that it wins or loses.
fn draw(m: &Member, hint: u64) -> f64 {
    let (high, low) = m.id.0.as_u64_pair();
    let bits = mix(mix(mix(hint) ^ high) ^ low) >> 11;
    // 53 bits, never 0: (0, 1].
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit; free space needs no more precision")]
    let (uniform, weight) = ((bits + 1) as f64 / (1u64 << 53) as f64, m.free_bytes.max(1) as f64);
    -uniform.ln() / weight
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use tidemill_types::{BookieState, Endpoint, Incarnation, MemberId, MemberRole, SessionId};

    use super::*;

    fn bookie(n: u32, zone: u8, free_bytes: u64) -> Member {
        Member {
            id: MemberId(uuid::Uuid::from_u128(u128::from(n) << 64 | 7)),
            role: MemberRole::Bookie,
            name: format!("bookie-{n}"),
            incarnation: Incarnation(1),
            pending_incarnation: None,
            endpoint: Endpoint { host: "127.0.0.1".into(), port: 1 },
            zone: format!("z{zone}"),
            state: BookieState::Rw,
            limbo_count: 0,
            session: Some(SessionId(u64::from(n) + 1)),
            lanes: Vec::new(),
            free_bytes,
            restarting: false,
        }
    }

    fn replication(copies: u8, ack_quorum: u8) -> Replication {
        Replication { copies, ack_quorum }
    }

    prop_compose! {
        fn members()(specs in proptest::collection::vec((0u8..4, 0u64..1000, 0u8..8, any::<bool>()), 0..14)) -> Vec<Member> {
            let states = [BookieState::Ro, BookieState::Draining, BookieState::Lost, BookieState::Limbo];
            specs.into_iter().zip(0u32..).map(|((zone, free, kind, restarting), n)| {
                let mut m = bookie(n, zone, free);
                m.restarting = restarting;
                match kind {
                    0 => m.session = None,
                    1 => m.role = MemberRole::Broker,
                    2 => m.state = states[n as usize % 4],
                    _ => {}
                }
                m
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn goals_of_an_ensemble(members in members(), copies in 1u8..6, qa in 1u8..6, hint in any::<u64>(), excluded in 0u32..14, fewer in any::<bool>()) {
            let qa = qa.min(copies);
            let exclude = [bookie(excluded, 0, 0).id];
            let may: Vec<_> = members.iter()
                .filter(|m| m.is_writable_bookie() && m.session.is_some() && m.id != exclude[0]).collect();
            let needed = usize::from(if fewer { qa } else { copies });
            match choose_ensemble(&members, replication(copies, qa), &exclude, hint, fewer) {
                Err(s) => prop_assert_eq!((s.writable, s.needed, s.writable < s.needed), (may.len(), needed, true)),
                Ok(e) => {
                    prop_assert_eq!(e.len(), usize::from(copies).min(may.len()));
                    prop_assert!(e.len() >= needed);
                    prop_assert_eq!(e.iter().collect::<BTreeSet<_>>().len(), e.len());
                    prop_assert!(e.iter().all(|b| may.iter().any(|m| m.id == *b)));
                    // As many zones as there can be.
                    let zones = |ms: &mut dyn Iterator<Item = &&Member>| ms.map(|m| m.zone.clone()).collect::<BTreeSet<_>>().len();
                    let used = zones(&mut may.iter().filter(|m| e.contains(&m.id)));
                    prop_assert_eq!(used, zones(&mut may.iter()).min(e.len()));
                    // The same again, in whatever order the members come.
                    let mut turned = members.clone();
                    turned.reverse();
                    prop_assert_eq!(choose_ensemble(&turned, replication(copies, qa), &exclude, hint, fewer), Ok(e));
                }
            }
        }

        #[test]
        fn goals_of_a_replacement(members in members(), hint in any::<u64>(), failed in 0usize..3) {
            let Ok(e) = choose_ensemble(&members, replication(3, 2), &[], hint, false) else { return Ok(()) };
            let staying: Vec<_> = e.iter().copied().filter(|b| *b != e[failed]).collect();
            let spare: Vec<_> = members.iter()
                .filter(|m| m.is_writable_bookie() && m.session.is_some() && !e.contains(&m.id)).collect();
            match choose_replacement(&members, &staying, &[e[failed]], hint) {
                Err(s) => { prop_assert!(spare.is_empty()); prop_assert_eq!(s.writable, 0); }
                Ok(b) => {
                    let new = spare.iter().find(|m| m.id == b).expect("a spare");
                    let taken: Vec<_> = members.iter().filter(|m| staying.contains(&m.id)).map(|m| &m.zone).collect();
                    prop_assert!(!taken.contains(&&new.zone) || spare.iter().all(|m| taken.contains(&&m.zone)));
                }
            }
        }
    }

    #[test]
    fn share_follows_free_space() {
        let members = [bookie(1, 0, 100), bookie(2, 0, 100), bookie(3, 0, 200)];
        let mut wins = [0u32; 3];
        for hint in 0..4_000 {
            let e = choose_ensemble(&members, replication(1, 1), &[], hint, false).unwrap();
            wins[members.iter().position(|m| m.id == e[0]).unwrap()] += 1;
        }
        assert!((900..1_100).contains(&wins[0]) && (900..1_100).contains(&wins[1]), "{wins:?}");
        assert!((1_850..2_150).contains(&wins[2]), "{wins:?}");
    }

    #[test]
    fn a_restarting_bookie_is_the_last_choice_within_a_zone() {
        let mut members = [bookie(1, 0, 1_000_000), bookie(2, 0, 1), bookie(3, 0, 1)];
        members[0].restarting = true;
        for hint in 0..50 {
            let e = choose_ensemble(&members, replication(2, 2), &[], hint, false).unwrap();
            assert!(!e.contains(&members[0].id));
        }
        assert_eq!(choose_ensemble(&members, replication(3, 2), &[], 0, false).unwrap().len(), 3);
    }
}
