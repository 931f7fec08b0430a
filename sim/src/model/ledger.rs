//! One ledger: its state, the possible steps, the invariants.

use std::fmt::Write as _;

use tidemill_ledger::core::{recovery::RecoveryCore, writer::WriterCore};
use tidemill_types::{
    BookieId, EntryId, Epoch, Fragment, FragmentSeq, LedgerId, LedgerRecord, LedgerState, MemberId,
    PartitionId, TopicId, Version,
};

use super::{
    bookie::Bookie,
    net::{Msg, Net, Who},
    scope::Scope,
};
use crate::{
    explore::Model,
    hash::{Part, Print},
};

/// The model.
#[derive(Clone, Debug)]
pub struct Ledger(pub Scope);

/// The writer and what it told its callers.
#[derive(Clone, Debug, Hash)]
pub struct Writer {
    /// The production core.
    pub core: WriterCore,
    /// Acknowledged to callers.
    pub acked: EntryId,
    /// Entries to add.
    pub entries_left: u8,
    /// Changes to make.
    pub changes_left: u8,
    /// Unknown outcomes to suffer.
    pub unknowns_left: u8,
    /// A close was begun.
    pub closing: bool,
}

/// A recoverer.
#[derive(Clone, Debug, Hash)]
pub struct Recoverer {
    /// The production core.
    pub core: RecoveryCore,
    /// Has begun.
    pub started: bool,
    /// Local changes to make.
    pub changes_left: u8,
    /// M5: the version after its own stores.
    pub version: Option<Version>,
}

/// The record and what was once stored.
#[derive(Clone, Debug, Hash)]
pub struct Meta {
    /// The record.
    pub record: LedgerRecord,
    /// The first end stored.
    pub first_end: Option<EntryId>,
}

/// A state.
#[derive(Clone, Debug)]
pub struct State {
    /// The writer.
    pub writer: Part<Writer>,
    /// The recoverers.
    pub recoverers: Vec<Part<Recoverer>>,
    /// The metadata.
    pub meta: Part<Meta>,
    /// The bookies.
    pub bookies: Vec<Part<Bookie<Msg2>>>,
    /// Messages.
    pub net: Net,
    /// Crashes to come.
    pub crashes_left: u8,
    /// Wipes to come.
    pub wipes_left: u8,
}

/// Held-back answers hash like messages.
#[derive(Clone, Debug)]
pub struct Msg2(pub Msg);

impl std::hash::Hash for Msg2 {
    fn hash<H: std::hash::Hasher>(&self, h: &mut H) {
        self.0.print().hash(h);
    }
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The writer adds an entry.
    Append,
    /// The writer takes the bookie at this index for failed.
    Replace(u8),
    /// The writer closes the ledger.
    BeginClose,
    /// A recoverer begins.
    Start(u8),
    /// The n-th message arrives.
    Deliver(usize),
    /// The n-th message is a metadata command whose outcome the writer does not learn; it may be applied later.
    LoseOutcome(usize),
    /// A recoverer takes the bookie at this index for failed while it writes back.
    FailWrite(u8, u8),
    /// The n-th message is a request whose answer a recoverer no longer waits for.
    TimeOut(usize),
    /// A bookie syncs.
    Sync(Who),
    /// A bookie crashes and comes back.
    Crash(Who),
    /// A bookie loses everything and comes back under its uuid.
    Wipe(Who),
    /// A bookie leaves limbo.
    LeaveLimbo(Who),
    /// A bookie collects the ledger.
    Collect(Who),
}

/// Uuid of the n-th bookie.
#[must_use]
pub fn uuid(n: Who) -> BookieId {
    MemberId(uuid::Uuid::from_u128(u128::from(n) + 1))
}

/// Number of the bookie with this uuid.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "made by `uuid`")]
pub fn number(b: BookieId) -> Who {
    (b.0.as_u128() - 1) as Who
}

impl Model for Ledger {
    type State = State;
    type Action = Action;

    fn initial(&self) -> State {
        let s = &self.0;
        let record = LedgerRecord {
            id: LedgerId(1),
            version: Version(1),
            partition: PartitionId { topic: TopicId(1), index: 0 },
            epoch: Epoch(1),
            ack_quorum: s.ack_quorum,
            state: LedgerState::Open,
            last_entry: None,
            length: None,
            records: None,
            fragments: vec![Fragment {
                first_entry: EntryId::FIRST,
                ensemble: (0..s.copies).map(uuid).collect(),
                under: vec![],
            }],
            fragment_seq: FragmentSeq(0),
            unchecked: false,
            repair: None,
            created_ms: 0,
        };
        let mut core = WriterCore::new(record.clone(), 100, s.rules);
        for n in 0..s.copies {
            super::writer::bookie_up(&mut core, uuid(n));
        }
        let recoverer = Recoverer {
            core: RecoveryCore::new(record.id, s.window, s.rules),
            started: false,
            changes_left: s.recoverer_changes,
            version: None,
        };
        State {
            writer: Part::new(Writer {
                core,
                acked: EntryId::NONE,
                entries_left: s.entries,
                changes_left: s.writer_changes,
                unknowns_left: s.unknown_outcomes,
                closing: false,
            }),
            recoverers: vec![Part::new(recoverer); usize::from(s.recoverers)],
            meta: Part::new(Meta { record, first_end: None }),
            bookies: vec![Part::new(Bookie::default()); usize::from(s.bookies)],
            net: Net::default(),
            crashes_left: s.crashes,
            wipes_left: s.wipes,
        }
    }

    fn actions(&self, s: &State, out: &mut Vec<Action>) {
        super::actions::actions(&self.0, s, out);
    }

    fn apply(&self, s: &State, a: Action) -> State {
        super::steps::apply(&self.0, s, a)
    }

    fn fingerprint(&self, s: &State) -> u128 {
        let parts = (
            s.writer.print(),
            s.meta.print(),
            s.recoverers.iter().map(Part::print).collect::<Vec<_>>(),
            s.bookies.iter().map(Part::print).collect::<Vec<_>>(),
            &s.net,
            (s.crashes_left, s.wipes_left),
        );
        Print::of(&parts)
    }

    /// T, R, A, C, D of 1.9.
    fn violated(&self, s: &State) -> Option<String> {
        let r = &s.meta.record;
        let acked = s.writer.acked;
        let copies = |e: EntryId| {
            r.fragment_of(e).map_or(0, |f| {
                let holds = |b: &&BookieId| {
                    s.bookies.get(usize::from(number(**b))).is_some_and(|b| b.synced.get(e).is_some())
                };
                f.ensemble.iter().filter(holds).count()
            })
        };
        for e in 0..=acked.0 {
            if r.last_entry.is_none_or(|end| EntryId(e) <= end) && copies(EntryId(e)) == 0 {
                return Some(format!("R: acknowledged entry {e} is on no bookie that the metadata names"));
            }
        }
        let (LedgerState::Closed, Some(end)) = (r.state, r.last_entry) else { return None };
        if acked > end {
            return Some(format!("T: entry {acked} was acknowledged, the ledger is closed at {end}"));
        }
        if s.meta.first_end != Some(end) {
            return Some(format!("C: the end changed from {:?} to {end}", s.meta.first_end));
        }
        // M31: what a member lacks is listed, or nobody has looked yet.
        if !r.unchecked && self.0.check_under {
            for e in (0..=end.0).map(EntryId) {
                let Some(f) = r.fragment_of(e) else { continue };
                let listed = f.under.iter().any(|u| u.first <= e && e <= u.last);
                if copies(e) < f.ensemble.len() && !listed {
                    return Some(format!(
                        "U: a member lacks entry {e} of the closed ledger and nobody knows"
                    ));
                }
            }
        }
        // A lost disk takes its copies along: then Qa of them are the repair's care.
        for e in (0..=end.0).filter(|_| self.0.wipes == 0) {
            if copies(EntryId(e)) < usize::from(r.ack_quorum) {
                return Some(format!(
                    "A: entry {e} of the closed ledger is on {} bookies",
                    copies(EntryId(e))
                ));
            }
        }
        let lac = s.bookies.iter().map(|b| b.lac).max().unwrap_or(EntryId::NONE);
        (self.0.check_lac && lac > end)
            .then(|| format!("D: a bookie's LAC is {lac}, the ledger is closed at {end}"))
    }

    fn describe(&self, s: &State, a: Action) -> String {
        let mut line = String::new();
        let msg = |n: usize| s.net.get(n).map(describe_msg).unwrap_or_default();
        let _ = match a {
            Action::Append => write!(line, "writer adds entry {}", s.writer.core.next_entry()),
            Action::Replace(i) => write!(line, "writer takes the bookie at index {i} for failed"),
            Action::BeginClose => write!(line, "writer closes at {}", s.writer.core.lac()),
            Action::Start(r) => write!(line, "recoverer {r} starts"),
            Action::Deliver(n) => write!(line, "arrives: {}", msg(n)),
            Action::LoseOutcome(n) => write!(line, "outcome unknown to the writer: {}", msg(n)),
            Action::FailWrite(r, i) => write!(line, "recoverer {r} takes index {i} for failed"),
            Action::TimeOut(n) => write!(line, "times out: {}", msg(n)),
            Action::Sync(b) => write!(line, "bookie {b} syncs"),
            Action::Crash(b) => write!(line, "bookie {b} crashes and restarts"),
            Action::Wipe(b) => write!(line, "bookie {b} loses its disk and boots under its old uuid"),
            Action::LeaveLimbo(b) => write!(line, "bookie {b} leaves limbo"),
            Action::Collect(b) => write!(line, "bookie {b} collects the ledger"),
        };
        line
    }
}

fn describe_msg(m: &Msg) -> String {
    match m {
        Msg::Add { bookie, index, attempt, entry } => {
            format!(
                "add {} to bookie {bookie} (index {index}, attempt {})",
                entry.header().entry,
                attempt.seq
            )
        }
        Msg::Added { bookie, index, attempt, entry, ok } => {
            let what = if *ok { "ack" } else { "fenced" };
            format!("{what} of {entry} from bookie {bookie} (index {index}, attempt {})", attempt.seq)
        }
        Msg::Fence { r, bookie, .. } => format!("fence of recoverer {r} to bookie {bookie}"),
        Msg::Fenced { r, index, lac } => {
            format!("fence confirmed to recoverer {r} by index {index}, LAC {lac}")
        }
        Msg::Read { r, bookie, entry, fence, .. } => {
            format!("read {entry} of recoverer {r} to bookie {bookie}, fence {fence}")
        }
        Msg::Data { r, index, entry, found } => {
            let what = if found.is_some() { "copy of" } else { "no such entry" };
            format!("{what} {entry} to recoverer {r} from index {index}")
        }
        Msg::Write { r, bookie, entry, .. } => {
            format!("write-back of {} by recoverer {r} to bookie {bookie}", entry.header().entry)
        }
        Msg::Written { r, index, entry, .. } => {
            format!("write-back ack of {entry} to recoverer {r}, index {index}")
        }
        Msg::Change { change, detached } => format!(
            "ensemble change from {} to {:?} (version {}{})",
            change.first_entry,
            change.ensemble.iter().map(|b| number(*b)).collect::<Vec<_>>(),
            change.version,
            if *detached { ", nobody hears the answer" } else { "" },
        ),
        Msg::WriterClose { close, .. } => format!("writer's close at {}", close.last_entry),
        Msg::RecoverClose { r, close } => format!("close at {} by recoverer {r}", close.last_entry),
    }
}
