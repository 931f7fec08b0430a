//! State, invariants, words.

use std::hash::{Hash, Hasher};

use tidemill_ledger::{
    BookieInfo, BookieTable,
    core::repair::{Held, RepairCore},
};
use tidemill_types::{
    BookieState, Endpoint, Entry, EntryId, EntryRange, Epoch, Fragment, FragmentSeq, Incarnation, LedgerId,
    LedgerRecord, LedgerState, PartitionId, TopicId, Version, meta::FinishRepair,
};

use super::{RepairScope, steps};
use crate::{
    explore::Model,
    hash::Print,
    model::ledger::{number, uuid},
};

/// The model.
#[derive(Clone, Debug)]
pub struct RepairModel(pub RepairScope);

/// A bookie.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Copies, in order of entries.
    pub copies: Vec<Entry>,
    /// State of the uuid.
    pub state: BookieState,
    /// Boots into limbo.
    pub limbo_count: u32,
    /// A collection has looked at the record and goes on to delete.
    pub collecting: bool,
}

impl Disk {
    pub(super) fn get(&self, e: EntryId) -> Option<&Entry> {
        self.copies.iter().find(|c| c.header().entry == e)
    }

    pub(super) fn put(&mut self, e: Entry) -> bool {
        if let Some(old) = self.get(e.header().entry) {
            return old.bytes() == e.bytes();
        }
        self.copies.push(e);
        self.copies.sort_by_key(|c| c.header().entry);
        true
    }

    pub(super) fn held(&self) -> Held {
        let mut ranges: Vec<EntryRange> = Vec::new();
        for e in self.copies.iter().map(|c| c.header().entry) {
            match ranges.last_mut() {
                Some(r) if r.last.next() == e => r.last = e,
                _ => ranges.push(EntryRange { first: e, last: e }),
            }
        }
        Held::Ranges { ranges, complete: self.state != BookieState::Limbo }
    }
}

impl Hash for Disk {
    fn hash<H: Hasher>(&self, h: &mut H) {
        for c in &self.copies {
            (c.header().entry, c.header().head_crc).hash(h);
        }
        (self.state as u8, self.limbo_count, self.collecting).hash(h);
    }
}

/// What the worker waits for.
#[derive(Clone, Debug)]
pub enum Ask {
    /// The record.
    Record,
    /// Its own holdings.
    List,
    /// An entry of another bookie.
    Read(u8, EntryId),
    /// Its own disk.
    Write(Entry),
    /// The quorum.
    Finish(FinishRepair),
}

impl Hash for Ask {
    fn hash<H: Hasher>(&self, h: &mut H) {
        match self {
            Self::Record => 0u8.hash(h),
            Self::List => 1u8.hash(h),
            Self::Read(b, e) => (2u8, b, e).hash(h),
            Self::Write(e) => (3u8, e.header().entry, e.header().head_crc).hash(h),
            Self::Finish(f) => (4u8, print_of(f)).hash(h),
        }
    }
}

pub(super) fn print_of(f: &FinishRepair) -> (Version, u8, u128) {
    (f.version, number(f.target), Print::of(format!("{:?}", f.outcome).as_str()))
}

/// The bookie that works at the repair.
#[derive(Clone, Debug, Hash)]
pub struct Worker {
    /// Which.
    pub me: u8,
    /// The production core.
    pub core: RepairCore,
    /// What it waits for.
    pub asks: Vec<Ask>,
}

/// The auditor asks what the members hold.
#[derive(Clone, Debug, Hash)]
pub struct Looking {
    /// As of this record.
    pub record: LedgerRecord,
    /// Answers by bookie.
    pub answers: Vec<Option<Held>>,
}

/// A state.
#[derive(Clone, Debug)]
pub struct World {
    /// The record.
    pub record: LedgerRecord,
    /// The bookies.
    pub disks: Vec<Disk>,
    /// The worker.
    pub worker: Option<Worker>,
    /// The look.
    pub looking: Option<Looking>,
    /// A verdict on its way: nothing is `unchecked` as of this version.
    pub mark: Option<Version>,
    /// Ends of repairs that may be applied at any later time.
    pub late: Vec<FinishRepair>,
    /// What may still happen, in the order of the scope.
    pub left: Left,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    pub(super) losses: u8,
    pub(super) limbos: u8,
    pub(super) drains: u8,
    pub(super) abandons: u8,
    pub(super) crashes: u8,
    pub(super) unknowns: u8,
    pub(super) time_outs: u8,
    pub(super) silences: u8,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The auditor starts a repair.
    Start,
    /// The auditor takes the repair away.
    Abandon,
    /// The auditor begins to look.
    Look,
    /// A bookie answers it.
    Answer(u8),
    /// A bookie does not answer it.
    Silence(u8),
    /// The auditor judges the answers.
    Judge,
    /// Its verdict is applied.
    Mark,
    /// The target finds the repair and begins.
    Work,
    /// What the worker waits for n-th happens.
    Serve(usize),
    /// It does not get an answer to the read.
    TimeOut(usize),
    /// It does not get an answer to the end that it sent.
    Unknown(usize),
    /// An end that was sent earlier is applied.
    Late(usize),
    /// The worker crashes.
    Crash,
    /// A bookie loses everything and is given up.
    Lose(u8),
    /// A bookie loses what it has of the ledger and keeps its uuid.
    Limbo(u8),
    /// A bookie has everything that is expected of it, and leaves limbo.
    LeaveLimbo(u8),
    /// Somebody wishes that it be emptied.
    Drain(u8),
    /// A bookie is retired.
    Retire(u8),
    /// A collection begins: it looks at the record under the ledger's lock.
    Collect(u8),
    /// It deletes.
    Delete(u8),
}

/// The n-th entry of the ledger.
pub(super) fn entry(n: u8) -> Entry {
    let id = EntryId(i64::from(n));
    match Entry::encode(LedgerId(1), id, EntryId::NONE, 0, b"", &[bytes::Bytes::from(vec![n])]) {
        Ok(e) => e,
        Err(e) => unreachable!("a tiny entry is encoded: {e}"),
    }
}

impl World {
    /// The table of members as the cores take it.
    pub(super) fn table(&self) -> BookieTable {
        (0u8..)
            .zip(&self.disks)
            .map(|(n, d)| BookieInfo {
                id: uuid(n),
                incarnation: Incarnation(1),
                endpoint: Endpoint { host: String::new(), port: 1 },
                zone: String::new(),
                state: d.state,
                limbo_count: d.limbo_count,
                restarting: false,
                live: !matches!(d.state, BookieState::Lost | BookieState::Retired),
                free_bytes: 0,
            })
            .collect()
    }
}

impl Model for RepairModel {
    type State = World;
    type Action = Act;

    fn initial(&self) -> World {
        let s = &self.0;
        let last = EntryId(i64::from(s.entries) - 1);
        let record = LedgerRecord {
            id: LedgerId(1),
            version: Version(1),
            partition: PartitionId { topic: TopicId(1), index: 0 },
            epoch: Epoch(1),
            ack_quorum: 2,
            state: LedgerState::Closed,
            last_entry: Some(last),
            length: Some(0),
            records: Some(0),
            fragments: vec![Fragment {
                first_entry: EntryId::FIRST,
                ensemble: (0..s.members).map(uuid).collect(),
                under: vec![],
            }],
            fragment_seq: FragmentSeq(0),
            unchecked: s.lacking > 0,
            repair: None,
            created_ms: 0,
        };
        let disks = (0..s.bookies)
            .map(|b| {
                let lacks = b < s.lacking;
                let entries = (0..s.entries).filter(|e| b < s.members && (*e > 0 || !lacks));
                Disk {
                    copies: entries.map(entry).collect(),
                    state: BookieState::Rw,
                    limbo_count: 0,
                    collecting: false,
                }
            })
            .collect();
        let left = Left {
            losses: s.losses,
            limbos: s.limbos,
            drains: s.drains,
            abandons: s.abandons,
            crashes: s.crashes,
            unknowns: s.unknowns,
            time_outs: s.time_outs,
            silences: s.silences,
        };
        World { record, disks, worker: None, looking: None, mark: None, late: Vec::new(), left }
    }

    fn actions(&self, w: &World, out: &mut Vec<Act>) {
        steps::actions(&self.0, w, out);
    }

    fn apply(&self, w: &World, a: Act) -> World {
        steps::apply(&self.0, w, a)
    }

    fn fingerprint(&self, w: &World) -> u128 {
        let late: Vec<_> = w.late.iter().map(print_of).collect();
        Print::of(&(&w.record, &w.disks, &w.worker, &w.looking, w.mark, late, w.left))
    }

    /// R: nothing is lost. F: what is said to be complete is complete. S: copies are the same. P: retired is not needed.
    fn violated(&self, w: &World) -> Option<String> {
        let r = &w.record;
        let members: &[_] = r.fragments.first().map_or(&[], |f| &f.ensemble);
        let disk = |b: &tidemill_types::BookieId| w.disks.get(usize::from(number(*b)));
        for n in 0..self.0.entries {
            let e = EntryId(i64::from(n));
            let mut first: Option<&Entry> = None;
            for b in members {
                let Some(d) = disk(b) else { continue };
                let silent = matches!(d.state, BookieState::Lost | BookieState::Retired);
                match (d.get(e).filter(|_| !silent), first) {
                    (Some(c), Some(f)) if c.bytes() != f.bytes() => {
                        return Some(format!("S: two copies of entry {n} differ"));
                    }
                    (Some(c), None) => first = Some(c),
                    (None, _) if !silent && d.state != BookieState::Limbo && !r.unchecked => {
                        return Some(format!("F: bookie {} lacks entry {n} and nobody knows", number(*b)));
                    }
                    _ => {}
                }
            }
            if first.is_none() {
                return Some(format!("R: entry {n} is on no bookie that the metadata names"));
            }
        }
        let retired = |b: &tidemill_types::BookieId| disk(b).is_some_and(|d| d.state == BookieState::Retired);
        let named = members.iter().copied().chain(r.repair.as_ref().map(|p| p.target)).find(retired);
        named.map(|b| format!("P: bookie {} is retired and named", number(b)))
    }

    fn describe(&self, w: &World, a: Act) -> String {
        steps::describe(w, a)
    }
}
