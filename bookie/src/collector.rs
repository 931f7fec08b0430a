//! What garbage collection may delete (R20), without I/O: the task `gc` asks, the model in `sim` asks the same code.
//!
//! The listing of what the quorum knows only chooses whom to ask about; every deletion rests on linearizable reads of that
//! one ledger:
//!
//! - (a) gone: two reads in two passes say that the record does not exist, and a third one under the ledger's lock;
//! - (b) moved away: a read says CLOSED, this bookie in no fragment and no repair names it; the same again under the lock.
//!
//! A quorum that lists *nothing* for a bookie that holds something may have forgotten everything, so its word about single
//! ledgers is worth nothing either, unless the listing is *proven*: the quorum shows that it is the one that this bookie serves
//! and that it knows the bookie's present. Then (a) asks for [`PASSES`] passes in a row instead of two.
//!
//! | what it shows | what it rules out |
//! | --- | --- |
//! | the cluster id of the cookies | another cluster behind the same address |
//! | this bookie with the incarnation of this boot and the session that is live in this process | a quorum restored from a copy that is older than this boot |
//! | a next ledger id above every ledger held | a quorum that lost its latest commands |
//! | no record of the ledger, in several passes in a row | an answer that is wrong for a while |
//!
//! A bookie in limbo takes no listing as proven.
//!
//! ```text
//!   begin(held, listing, proof) ──► look at these ──► read(record) ──► lock ──► read_again(record) ──► delete or keep
//!          └──► nothing held / not proven
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

use tidemill_types::{
    BookieId, BookieState, ClusterId, Incarnation, LedgerId, LedgerRecord, LedgerState, SessionId,
};

/// Passes in a row in which a ledger's record must be absent when the listing is empty.
pub const PASSES: u8 = 3;
/// The same when it is not.
const TWO: u8 = 2;

/// Switches for negative tests; all on in production.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Rules {
    /// The quorum must name the cluster of the cookies.
    pub same_cluster: bool,
    /// The quorum must know this boot and its live session.
    pub live_session: bool,
    /// The quorum must have handed out every id that is held.
    pub handed_out: bool,
    /// Passes in a row in which a record must be absent when the listing is empty.
    pub passes: u8,
    /// An absent record must have been absent in an earlier pass too.
    pub second_pass: bool,
    /// The record is read again under the ledger's lock.
    pub under_lock: bool,
    /// OPEN and IN_RECOVERY are never collected by (b) (off: M18).
    pub closed_only: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            same_cluster: true,
            live_session: true,
            handed_out: true,
            passes: PASSES,
            second_pass: true,
            under_lock: true,
            closed_only: true,
        }
    }
}

/// Who collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Me {
    /// Its uuid.
    pub bookie: BookieId,
    /// The cluster of its cookies.
    pub cluster: ClusterId,
    /// Of this boot.
    pub incarnation: Incarnation,
}

/// What the quorum says about this bookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// Of the boot that it knows.
    pub incarnation: Incarnation,
    /// The live session.
    pub session: Option<SessionId>,
    /// The state of the uuid.
    pub state: BookieState,
}

/// What a pass begins with; the quorum's part is read after the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Ledgers that this bookie holds, in order.
    pub held: Vec<LedgerId>,
    /// Ledgers that name it: the whole listing.
    pub named: BTreeSet<LedgerId>,
    /// Cluster id of the quorum.
    pub cluster: Option<ClusterId>,
    /// Next ledger id to be handed out.
    pub next_ledger: LedgerId,
    /// This bookie in the table of members. Only asked for an empty listing.
    pub standing: Option<Standing>,
    /// The session that is valid now, as this process knows it.
    pub session: Option<SessionId>,
    /// This bookie is in limbo.
    pub limbo: bool,
}

/// Why an empty listing is not taken for true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// The quorum is of another cluster, or of none.
    OtherCluster,
    /// The quorum does not know this boot and its session, or there is no session.
    NoSession,
    /// This bookie is in limbo, here or in the quorum.
    Limbo,
    /// The quorum has not handed out this ledger.
    NotHandedOut(LedgerId),
}

impl Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherCluster => f.write_str("it is another cluster's quorum"),
            Self::NoSession => f.write_str("it does not know this boot and its session"),
            Self::Limbo => f.write_str("the bookie is in limbo"),
            Self::NotHandedOut(l) => write!(f, "it has not handed out ledger {l}, which is held here"),
        }
    }
}

/// What a pass does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Nothing is held.
    Nothing,
    /// The listing is empty and not proven: nothing is asked, nothing is deleted.
    Unproven(Unproven),
    /// Ledgers to ask about, in order.
    Look {
        /// Those.
        suspects: Vec<LedgerId>,
        /// Held, but never handed out by this quorum: kept.
        strangers: Vec<LedgerId>,
        /// The listing is empty and proven.
        empty: bool,
    },
}

/// Why a ledger may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// (a).
    Gone,
    /// (b).
    MovedAway,
}

/// What to do with a ledger after its record was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Keep,
    /// Lock it, read the record again, and ask [`Collector::read_again`].
    Lock(Reason),
}

/// The collector of one bookie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Collector {
    me: Me,
    rules: Rules,
    /// Ledgers that earlier passes found gone, and how many passes in a row.
    gone: BTreeMap<LedgerId, u8>,
    /// Found gone in this pass.
    newly_gone: BTreeSet<LedgerId>,
    /// The listing of this pass is empty.
    empty: bool,
}

impl Collector {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(me: Me, rules: Rules) -> Self {
        Self { me, rules, gone: BTreeMap::new(), newly_gone: BTreeSet::new(), empty: false }
    }

    /// Begins a pass.
    pub fn begin(&mut self, facts: &Facts) -> Begin {
        for ledger in std::mem::take(&mut self.newly_gone) {
            let passes = self.gone.entry(ledger).or_default();
            *passes = passes.saturating_add(1).min(PASSES);
        }
        self.empty = facts.named.is_empty();
        if facts.held.is_empty() {
            self.forget();
            return Begin::Nothing;
        }
        if self.empty
            && let Some(why) = self.doubt(facts)
        {
            self.forget();
            return Begin::Unproven(why);
        }
        let unnamed = facts.held.iter().copied().filter(|l| !facts.named.contains(l));
        let handed_out = |l: &LedgerId| *l < facts.next_ledger || !self.rules.handed_out;
        let (suspects, strangers): (Vec<_>, Vec<_>) = unnamed.partition(handed_out);
        // What is named again, or was never handed out, is not on its way out.
        self.gone.retain(|l, _| suspects.binary_search(l).is_ok());
        Begin::Look { suspects, strangers, empty: self.empty }
    }

    /// No answer: what was found in this pass counts no more; behind an empty listing nothing does that was found before.
    pub fn failed(&mut self) {
        self.newly_gone.clear();
        if self.empty {
            self.gone.clear();
        }
    }

    fn forget(&mut self) {
        self.gone.clear();
        self.newly_gone.clear();
    }

    /// Whether the record of this ledger, absent now, was absent in enough passes before.
    fn long_gone(&self, ledger: LedgerId) -> bool {
        let needed = match (self.empty, self.rules.second_pass) {
            (true, _) => self.rules.passes,
            (false, true) => TWO,
            (false, false) => 1,
        };
        self.gone.get(&ledger).copied().unwrap_or(0) + 1 >= needed
    }

    fn doubt(&self, f: &Facts) -> Option<Unproven> {
        if self.rules.same_cluster && f.cluster != Some(self.me.cluster) {
            return Some(Unproven::OtherCluster);
        }
        let limbo = f.limbo || f.standing.is_some_and(|s| s.state == BookieState::Limbo);
        if limbo {
            return Some(Unproven::Limbo);
        }
        let known = f.session.is_some()
            && f.standing.is_some_and(|s| s.incarnation == self.me.incarnation && s.session == f.session);
        if self.rules.live_session && !known {
            return Some(Unproven::NoSession);
        }
        let last = f.held.last().copied().filter(|l| *l >= f.next_ledger);
        last.filter(|_| self.rules.handed_out).map(Unproven::NotHandedOut)
    }

    /// The record of a suspect, read in this pass.
    pub fn read(&mut self, ledger: LedgerId, record: Option<&LedgerRecord>) -> Verdict {
        let Some(record) = record else {
            if self.long_gone(ledger) {
                return Verdict::Lock(Reason::Gone);
            }
            self.newly_gone.insert(ledger);
            return Verdict::Keep;
        };
        self.gone.remove(&ledger);
        if self.moved_away(record) { Verdict::Lock(Reason::MovedAway) } else { Verdict::Keep }
    }

    /// The record, read again under the ledger's lock: whether the ledger is deleted.
    #[must_use]
    pub fn read_again(&self, reason: Reason, record: Option<&LedgerRecord>) -> bool {
        match record {
            _ if !self.rules.under_lock => true,
            None => reason == Reason::Gone,
            Some(r) => reason == Reason::MovedAway && self.moved_away(r),
        }
    }

    /// The ledger was deleted.
    pub fn deleted(&mut self, ledger: LedgerId) {
        self.gone.remove(&ledger);
    }

    fn moved_away(&self, record: &LedgerRecord) -> bool {
        (record.state == LedgerState::Closed || !self.rules.closed_only) && !record.names(self.me.bookie)
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::MemberId;
    use uuid::Uuid;

    use super::*;

    const SESSION: SessionId = SessionId(4);

    fn me() -> Me {
        let (bookie, cluster) = (MemberId(Uuid::from_u128(1)), ClusterId(Uuid::from_u128(2)));
        Me { bookie, cluster, incarnation: Incarnation(3) }
    }

    fn empty() -> Facts {
        Facts {
            held: vec![LedgerId(5), LedgerId(7)],
            named: BTreeSet::new(),
            cluster: Some(me().cluster),
            next_ledger: LedgerId(8),
            standing: Some(Standing {
                incarnation: me().incarnation,
                session: Some(SESSION),
                state: BookieState::Ro,
            }),
            session: Some(SESSION),
            limbo: false,
        }
    }

    fn pass(c: &mut Collector, facts: &Facts) -> Vec<Verdict> {
        match c.begin(facts) {
            Begin::Look { suspects, .. } => suspects.into_iter().map(|l| c.read(l, None)).collect(),
            Begin::Nothing | Begin::Unproven(_) => Vec::new(),
        }
    }

    #[test]
    fn behind_an_empty_listing_the_third_proven_pass_in_a_row_deletes() {
        let mut c = Collector::new(me(), Rules::default());
        let (keep, lock) = ([Verdict::Keep; 2], [Verdict::Lock(Reason::Gone); 2]);
        for expected in [keep, keep, lock, lock] {
            assert_eq!(pass(&mut c, &empty()), expected);
        }
        assert!(c.read_again(Reason::Gone, None));
        c.failed();
        for expected in [keep, keep, lock] {
            assert_eq!(pass(&mut c, &empty()), expected);
        }
        let named = Facts { named: BTreeSet::from([LedgerId(5)]), ..empty() };
        assert_eq!(pass(&mut c, &named), [Verdict::Lock(Reason::Gone)]);
        let mut c = Collector::new(me(), Rules::default());
        assert_eq!(pass(&mut c, &named), [Verdict::Keep], "two passes with a listing that is not empty");
        assert_eq!(pass(&mut c, &named), [Verdict::Lock(Reason::Gone)]);
    }

    #[test]
    fn each_doubt_starts_anew() {
        type Doubt = (fn(&mut Facts), Unproven);
        let doubts: [Doubt; 8] = [
            (|f| f.cluster = None, Unproven::OtherCluster),
            (|f| f.cluster = Some(ClusterId(Uuid::from_u128(9))), Unproven::OtherCluster),
            (|f| f.session = None, Unproven::NoSession),
            (|f| f.standing = None, Unproven::NoSession),
            (|f| f.standing.as_mut().unwrap().session = Some(SessionId(1)), Unproven::NoSession),
            (|f| f.standing.as_mut().unwrap().incarnation = Incarnation(1), Unproven::NoSession),
            (|f| f.limbo = true, Unproven::Limbo),
            (|f| f.next_ledger = LedgerId(7), Unproven::NotHandedOut(LedgerId(7))),
        ];
        for (change, why) in doubts {
            let mut c = Collector::new(me(), Rules::default());
            for _ in 0..3 {
                pass(&mut c, &empty());
            }
            let mut facts = empty();
            change(&mut facts);
            assert_eq!(c.begin(&facts), Begin::Unproven(why));
            assert_eq!(pass(&mut c, &empty()), [Verdict::Keep; 2], "{why}");
        }
    }
}
