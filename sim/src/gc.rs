//! Garbage collection (R20): the production collector of one bookie against a quorum that may forget.
//!
//! Two ledgers live, close, move away, get a repair, are deleted. The bookie passes over what it holds, one query a step, and
//! anything may happen between two queries; a query may fail. Once, the quorum is wrong in one of these ways, with every
//! query about ledgers answered as if there were none:
//!
//! | fault | what still shows it | how long |
//! | --- | --- | --- |
//! | another cluster's quorum answers | its cluster id | for ever |
//! | it was restored from a copy older than this boot | the session and incarnation that it has for the bookie | for ever |
//! | it lost its latest commands | its next ledger id | for ever |
//! | it is wrong for a while | nothing | one pass less than the collector waits for |
//!
//! Instead of that, one read of a single ledger may be wrong. Invariant: no copy is deleted that the true metadata asks for.

use std::collections::BTreeSet;

use tidemill_bookie::collector::{
    Begin, Collector, Facts, Me, PASSES, Reason, Rules, Standing, Unproven, Verdict,
};
use tidemill_types::{
    BookieId, BookieState, ClusterId, EntryId, Epoch, Fragment, FragmentSeq, Incarnation, LedgerId,
    LedgerRecord, LedgerState, MemberId, PartitionId, Repair, SessionId, TopicId, Version,
};
use uuid::Uuid;

use crate::{explore::Model, hash::Part};

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Another cluster's quorum answers.
    Foreign,
    /// Restored from a copy older than this boot.
    Old,
    /// The latest commands are lost.
    Tail,
    /// Wrong for a while.
    Passing,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Gc {
    /// Switches of the collector.
    pub rules: Rules,
    /// Faults to choose from; at most one happens.
    pub faults: Vec<Fault>,
    /// Wrong answers to single reads.
    pub wrong_reads: u8,
}

impl Default for Gc {
    fn default() -> Self {
        let faults = vec![Fault::Foreign, Fault::Old, Fault::Tail, Fault::Passing];
        Self { rules: Rules::default(), faults, wrong_reads: 0 }
    }
}

/// The true record of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Truth {
    state: LedgerState,
    /// A fragment names the bookie.
    named: bool,
    /// A repair names the bookie.
    repair: bool,
    deleted: bool,
}

impl Truth {
    /// Whether a copy here is asked for, or may be (R20, M18).
    fn needs_copy(self) -> bool {
        !self.deleted && (self.state != LedgerState::Closed || self.named || self.repair)
    }
}

/// Where the pass stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Listed(BTreeSet<LedgerId>),
    Looking(Vec<LedgerId>),
    Locked(Reason, Vec<LedgerId>),
}

/// A state.
#[derive(Clone, Debug, Hash)]
pub struct State {
    truth: [Truth; 2],
    held: Vec<LedgerId>,
    collector: Collector,
    phase: Phase,
    fault: Option<Fault>,
    may_fail: bool,
    /// Passes that the passing fault lasts.
    passes: u8,
    wrong_reads: u8,
    lost: Option<LedgerId>,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The writer or a recoverer closes the ledger.
    Close(usize),
    /// Its fragment changes to another bookie.
    Move(usize),
    /// A repair names the bookie.
    Repair(usize),
    /// The repair has put it into a fragment.
    Repaired(usize),
    /// Its topic is deleted.
    Delete(usize),
    /// The quorum goes wrong.
    Begin(Fault),
    /// The quorum is right again.
    End,
    /// The bookie lists.
    List,
    /// It reads what the quorum shows of itself, and begins.
    Look,
    /// It reads the first suspect.
    Read,
    /// The same, and the answer is wrongly "no such ledger".
    ReadWrong,
    /// It reads again under the lock, and deletes when it may.
    ReadAgain,
    /// A query gets no answer.
    Fail,
}

const NOW: Incarnation = Incarnation(2);
const SESSION: SessionId = SessionId(2);

fn me() -> Me {
    Me { bookie: bookie(1), cluster: ClusterId(Uuid::from_u128(1)), incarnation: NOW }
}

fn bookie(n: u128) -> BookieId {
    MemberId(Uuid::from_u128(n))
}

fn id(i: usize) -> LedgerId {
    LedgerId(i as u64 + 1)
}

fn index(l: LedgerId) -> usize {
    usize::from(l.0 == 2)
}

fn record(i: usize, t: Truth) -> LedgerRecord {
    let member = if t.named { bookie(1) } else { bookie(2) };
    LedgerRecord {
        id: id(i),
        version: Version(1),
        partition: PartitionId { topic: TopicId(1), index: 0 },
        epoch: Epoch(1),
        ack_quorum: 1,
        state: t.state,
        last_entry: (t.state == LedgerState::Closed).then_some(EntryId::FIRST),
        length: None,
        records: None,
        fragments: vec![Fragment { first_entry: EntryId::FIRST, ensemble: vec![member], under: vec![] }],
        fragment_seq: FragmentSeq(0),
        unchecked: false,
        repair: t.repair.then(|| Repair {
            target: bookie(1),
            limbo_count: 0,
            worker: bookie(3),
            since_ms: 0,
        }),
        created_ms: 0,
    }
}

impl State {
    /// Both ledgers were deleted by their users, and nothing is held any more.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.held.is_empty() && self.truth.iter().all(|t| t.deleted)
    }

    /// The record as the quorum tells it.
    fn told(&self, l: LedgerId) -> Option<LedgerRecord> {
        let t = self.truth[index(l)];
        (self.fault.is_none() && !t.deleted).then(|| record(index(l), t))
    }

    fn facts(&self, named: BTreeSet<LedgerId>) -> Facts {
        let now = Standing { incarnation: NOW, session: Some(SESSION), state: BookieState::Rw };
        let old = Standing { incarnation: Incarnation(1), session: None, ..now };
        Facts {
            held: self.held.clone(),
            named,
            cluster: Some(ClusterId(Uuid::from_u128(if self.fault == Some(Fault::Foreign) { 2 } else { 1 }))),
            next_ledger: LedgerId(if self.fault == Some(Fault::Tail) { 1 } else { 9 }),
            standing: Some(if self.fault == Some(Fault::Old) { old } else { now }),
            session: Some(SESSION),
            limbo: false,
        }
    }

    fn idle(&mut self) {
        self.phase = Phase::Idle;
        if self.fault == Some(Fault::Passing) {
            self.passes -= 1;
            if self.passes == 0 {
                self.fault = None;
            }
        }
    }

    fn looking(&mut self, rest: Vec<LedgerId>) {
        if rest.is_empty() { self.idle() } else { self.phase = Phase::Looking(rest) }
    }

    fn delete(&mut self, l: LedgerId) {
        self.held.retain(|h| *h != l);
        self.collector.deleted(l);
        if self.truth[index(l)].needs_copy() {
            self.lost = Some(l);
        }
    }

    fn look(&mut self, named: BTreeSet<LedgerId>) {
        match self.collector.begin(&self.facts(named)) {
            Begin::Nothing | Begin::Unproven(_) => self.idle(),
            Begin::Look { suspects, .. } => self.looking(suspects),
        }
    }

    fn read(&mut self, mut rest: Vec<LedgerId>, record: Option<&LedgerRecord>) {
        match self.collector.read(rest[0], record) {
            Verdict::Keep => {
                rest.remove(0);
                self.looking(rest);
            }
            Verdict::Lock(reason) => self.phase = Phase::Locked(reason, rest),
        }
    }
}

impl Model for Gc {
    type State = Part<State>;
    type Action = Action;

    fn initial(&self) -> Part<State> {
        let open = Truth { state: LedgerState::Open, named: true, repair: false, deleted: false };
        Part::new(State {
            truth: [open; 2],
            held: vec![id(0), id(1)],
            collector: Collector::new(me(), self.rules),
            phase: Phase::Idle,
            fault: None,
            may_fail: !self.faults.is_empty(),
            passes: PASSES - 1,
            wrong_reads: self.wrong_reads,
            lost: None,
        })
    }

    fn actions(&self, s: &Part<State>, out: &mut Vec<Action>) {
        for (i, t) in s.truth.iter().enumerate().filter(|(_, t)| !t.deleted) {
            out.push(Action::Delete(i));
            if t.state == LedgerState::Open {
                out.push(Action::Close(i));
            }
            if t.named {
                out.push(Action::Move(i));
            } else if t.repair {
                out.push(Action::Repaired(i));
            } else if t.state == LedgerState::Closed {
                out.push(Action::Repair(i));
            }
        }
        match s.fault {
            None if s.may_fail => out.extend(self.faults.iter().map(|f| Action::Begin(*f))),
            None => {}
            Some(_) => out.push(Action::End),
        }
        match &s.phase {
            Phase::Idle if s.held.is_empty() => {}
            Phase::Idle => out.push(Action::List),
            Phase::Listed(_) => out.extend([Action::Look, Action::Fail]),
            Phase::Looking(_) => {
                out.extend([Action::Read, Action::Fail]);
                if s.wrong_reads > 0 {
                    out.push(Action::ReadWrong);
                }
            }
            Phase::Locked(..) => out.extend([Action::ReadAgain, Action::Fail]),
        }
    }

    fn apply(&self, state: &Part<State>, action: Action) -> Part<State> {
        let mut state = state.clone();
        state.edit(|s| apply(s, action));
        state
    }

    fn fingerprint(&self, s: &Part<State>) -> u128 {
        s.print()
    }

    fn violated(&self, s: &Part<State>) -> Option<String> {
        s.lost.map(|l| format!("K: the copy of ledger {l} was deleted, and the metadata asks for it"))
    }

    fn describe(&self, s: &Part<State>, action: Action) -> String {
        let at = match &s.phase {
            Phase::Looking(rest) | Phase::Locked(_, rest) => rest.first().map(|l| format!(" (ledger {l})")),
            Phase::Idle | Phase::Listed(_) => None,
        };
        let doubt = match (&s.phase, action) {
            (Phase::Listed(named), Action::Look) => {
                match s.collector.clone().begin(&s.facts(named.clone())) {
                    Begin::Unproven(why) => format!(": {}", Self::doubt(why)),
                    other => format!(": {other:?}"),
                }
            }
            _ => String::new(),
        };
        format!("{action:?}{}{doubt}", at.unwrap_or_default())
    }
}

impl Gc {
    fn doubt(why: Unproven) -> String {
        format!("not proven, {why}")
    }
}

fn apply(s: &mut State, action: Action) {
    match action {
        Action::Close(i) => s.truth[i].state = LedgerState::Closed,
        Action::Move(i) => s.truth[i].named = false,
        Action::Repair(i) => s.truth[i].repair = true,
        Action::Repaired(i) => (s.truth[i].repair, s.truth[i].named) = (false, true),
        Action::Delete(i) => s.truth[i].deleted = true,
        Action::Begin(f) => (s.fault, s.may_fail) = (Some(f), false),
        Action::End => s.fault = None,
        Action::List => {
            let named = (0..2).map(id).filter(|l| s.told(*l).is_some_and(|r| r.names(me().bookie)));
            s.phase = Phase::Listed(named.collect());
        }
        Action::Fail => {
            s.collector.failed();
            s.idle();
        }
        Action::Look | Action::Read | Action::ReadWrong | Action::ReadAgain => {
            match (std::mem::replace(&mut s.phase, Phase::Idle), action) {
                (Phase::Listed(named), _) => s.look(named),
                (Phase::Looking(rest), Action::ReadWrong) => {
                    s.wrong_reads -= 1;
                    s.read(rest, None);
                }
                (Phase::Looking(rest), _) => {
                    let record = s.told(rest[0]);
                    s.read(rest, record.as_ref());
                }
                // The lock is held from before this read until the delete is durable: one step.
                (Phase::Locked(reason, mut rest), _) => {
                    let ledger = rest.remove(0);
                    let record = s.told(ledger);
                    if s.collector.read_again(reason, record.as_ref()) {
                        s.delete(ledger);
                    }
                    s.looking(rest);
                }
                (Phase::Idle, _) => {}
            }
        }
    }
}
