//! One repair, at its target: list what is here, copy what is missing, list again, swap in one command.
//!
//! The order is the point (R20, R23): the record that names the target in its repair is read **before** the listing, so that
//! no collection of this bookie can take away what the listing tells; and the command that ends the repair is conditional
//! on the version of that very record. When the version moved, the record is read and everything is listed again.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
};

use tidemill_types::{
    BookieId, BookieState, Entry, EntryId, EntryRange, LedgerRecord, Version,
    meta::{FinishRepair, Rejection, RepairOutcome},
};

use super::{
    events::{Abort, Held, Input, Output, RepairRules},
    job::{Job, job},
    span::{expected, first, missing, spans},
};
use crate::{
    BookieTable,
    core::{AddAnswer, MetaOutcome, Negative, ReadAnswer},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Record,
    List,
    Copy,
    Finish,
    Over,
}

/// An entry under way.
#[derive(Clone, Debug, Default, Hash)]
struct Op {
    /// Who is asked now; nobody while it is being written here.
    asked: Option<BookieId>,
    /// Who did not have it or did not answer.
    tried: Vec<BookieId>,
    /// One of them did not say "no such entry".
    unknown: bool,
}

/// The repairer.
#[derive(Clone, Debug)]
pub struct RepairCore {
    rules: RepairRules,
    me: BookieId,
    /// Entries under way at once.
    window: usize,
    phase: Phase,
    /// As read last: it names this bookie in its repair.
    record: Option<LedgerRecord>,
    job: Option<Job>,
    /// Entries that are to be here when the repair ends.
    wanted: Vec<EntryRange>,
    /// Not asked for yet.
    left: Vec<EntryRange>,
    ops: BTreeMap<EntryId, Op>,
    /// Model only: entries that a switched-off rule let pass.
    skipped: Vec<EntryId>,
    /// Entries written since the last listing.
    fresh: u64,
    copied: u64,
}

impl RepairCore {
    /// A repair with the target `me`; `window` entries are copied at once, at least 1.
    #[must_use]
    pub fn new(me: BookieId, window: usize, rules: RepairRules) -> Self {
        Self {
            rules,
            me,
            window: window.max(1),
            phase: Phase::Record,
            record: None,
            job: None,
            wanted: Vec::new(),
            left: Vec::new(),
            ops: BTreeMap::new(),
            skipped: Vec::new(),
            fresh: 0,
            copied: 0,
        }
    }

    /// The first output.
    pub fn start(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Record;
        out.push(Output::ReadRecord);
    }

    /// Nothing more happens.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The work, once the record was read.
    #[must_use]
    pub fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Entries that are still to be copied, as of the last listing.
    #[must_use]
    pub fn entries_left(&self) -> u64 {
        super::span::count(&self.left) + self.ops.len() as u64
    }

    /// One step. `table` and `copies` are as known now; inputs of an earlier phase are ignored.
    pub fn step(&mut self, input: Input, table: &BookieTable, copies: usize, out: &mut Vec<Output>) {
        match (self.phase, input) {
            (Phase::Record, Input::Record(r)) => self.on_record(r, table, copies, out),
            (Phase::List, Input::Listed(held)) => self.on_listed(held, table, out),
            (Phase::Copy, Input::Read { source, entry, answer }) => {
                self.on_read(source, entry, answer, table, out);
            }
            (Phase::Copy, Input::Written { entry, answer }) => self.on_written(entry, answer, table, out),
            (Phase::Finish, Input::Finished(outcome)) => self.on_finished(&outcome, out),
            _ => {}
        }
    }

    fn on_record(
        &mut self,
        record: Option<LedgerRecord>,
        table: &BookieTable,
        copies: usize,
        out: &mut Vec<Output>,
    ) {
        let Some(record) = record else {
            self.phase = Phase::Over;
            return out.push(Output::Gone);
        };
        if record.repair.as_ref().is_none_or(|r| r.target != self.me) {
            self.phase = Phase::Over;
            return out.push(Output::NotMine);
        }
        let again = self.record.is_some();
        let job = job(&record, table, copies, self.me);
        let same = again && job == self.job;
        self.record = Some(record);
        self.job = job;
        let Some(job) = self.job.clone() else { return self.abort(Abort::NoJob, out) };
        if same && !self.rules.list_again {
            return self.finish(out);
        }
        self.wanted = self.wanted_for(&job);
        self.fresh = 0;
        self.phase = Phase::List;
        out.push(Output::List);
    }

    fn wanted_for(&self, job: &Job) -> Vec<EntryRange> {
        let Some(record) = &self.record else { return Vec::new() };
        match job {
            Job::Fill => expected(record, self.me),
            Job::Replace { fragments, .. } | Job::Grow { fragments } => {
                spans(record, |i| fragments.contains(&record.fragments[i].first_entry))
            }
        }
    }

    fn on_listed(&mut self, held: Held, table: &BookieTable, out: &mut Vec<Output>) {
        let Held::Ranges { ranges, .. } = held else { return self.abort(Abort::NotListed, out) };
        let mut left = missing(&self.wanted, &ranges);
        for e in &self.skipped {
            left = missing(&left, &[EntryRange { first: *e, last: *e }]);
        }
        if left.is_empty() {
            return self.finish(out);
        }
        // A second listing is there to confirm the first round; what is written and does not stay is no progress.
        if self.fresh > 0
            && let Some(entry) = first(&left)
        {
            return self.abort(Abort::NotTaken(entry), out);
        }
        self.left = left;
        self.phase = Phase::Copy;
        self.fill_window(table, out);
    }

    fn fill_window(&mut self, table: &BookieTable, out: &mut Vec<Output>) {
        while self.phase == Phase::Copy && self.ops.len() < self.window {
            let Some(range) = self.left.first_mut() else { break };
            let entry = range.first;
            range.first = entry.next();
            if range.first > range.last {
                self.left.remove(0);
            }
            self.ops.insert(entry, Op::default());
            self.ask(entry, table, out);
        }
        if self.phase == Phase::Copy && self.ops.is_empty() && self.left.is_empty() {
            // What is durable here is asked of the bookie, not remembered.
            self.phase = Phase::List;
            out.push(Output::List);
        }
    }

    /// Sources of an entry in the order in which they are asked: everybody whom the fragment names and who answers, a member
    /// in limbo last: it may not have it.
    fn sources(&self, entry: EntryId, table: &BookieTable) -> Vec<BookieId> {
        let members = self.record.as_ref().and_then(|r| r.fragment_of(entry)).map(|f| f.ensemble.as_slice());
        let mut found: Vec<(bool, BookieId)> = members
            .unwrap_or_default()
            .iter()
            .filter(|b| **b != self.me)
            .filter_map(|b| table.get(*b))
            .filter(|b| !matches!(b.state, BookieState::Lost | BookieState::Retired))
            .map(|b| (!b.live || b.state == BookieState::Limbo, b.id))
            .collect();
        found.sort_by_key(|(last, _)| *last);
        found.into_iter().map(|(_, b)| b).collect()
    }

    fn ask(&mut self, entry: EntryId, table: &BookieTable, out: &mut Vec<Output>) {
        let sources = self.sources(entry, table);
        let Some(op) = self.ops.get_mut(&entry) else { return };
        op.asked = sources.into_iter().find(|b| !op.tried.contains(b));
        match op.asked {
            Some(source) => out.push(Output::Read { source, entry }),
            None => {
                let denied = !op.unknown && !op.tried.is_empty();
                self.abort(if denied { Abort::Denied(entry) } else { Abort::NoSource(entry) }, out);
            }
        }
    }

    fn on_read(
        &mut self,
        source: BookieId,
        entry: EntryId,
        answer: ReadAnswer<Entry>,
        table: &BookieTable,
        out: &mut Vec<Output>,
    ) {
        let ledger = self.record.as_ref().map(|r| r.id);
        let Some(op) = self.ops.get_mut(&entry).filter(|o| o.asked == Some(source)) else { return };
        match answer {
            // The driver checked the digest, this checks the names: no bookie can serve one entry as another.
            ReadAnswer::Found(e) if Some(e.header().ledger) == ledger && e.header().entry == entry => {
                op.asked = None;
                out.push(Output::Write(if self.rules.same_bytes { e } else { encoded_anew(&e) }));
            }
            ReadAnswer::Negative(_) if !self.rules.no_gaps => self.skip(entry, table, out),
            ReadAnswer::Unknown(_) if !self.rules.unknown_is_not_negative => self.skip(entry, table, out),
            ReadAnswer::Negative(Negative::NoSuchEntry | Negative::NoSuchLedger) => {
                op.tried.push(source);
                self.ask(entry, table, out);
            }
            ReadAnswer::Found(_) | ReadAnswer::Unknown(_) => {
                op.unknown = true;
                op.tried.push(source);
                self.ask(entry, table, out);
            }
        }
    }

    /// Model only: a rule is off.
    fn skip(&mut self, entry: EntryId, table: &BookieTable, out: &mut Vec<Output>) {
        self.ops.remove(&entry);
        self.skipped.push(entry);
        self.fill_window(table, out);
    }

    fn on_written(&mut self, entry: EntryId, answer: AddAnswer, table: &BookieTable, out: &mut Vec<Output>) {
        match answer {
            AddAnswer::Ok => {
                if self.ops.remove(&entry).is_some() {
                    self.fresh += 1;
                    self.copied += 1;
                }
                self.fill_window(table, out);
            }
            AddAnswer::Conflict => self.abort(Abort::Divergent(entry), out),
            AddAnswer::Fenced | AddAnswer::Overloaded { .. } | AddAnswer::Unknown(_) => {
                self.abort(Abort::NotTaken(entry), out);
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<Output>) {
        let outcome = match self.job.clone() {
            Some(Job::Replace { from, fragments }) => RepairOutcome::Replaced { from, fragments },
            Some(Job::Grow { fragments }) => RepairOutcome::Grown { fragments },
            Some(Job::Fill) => RepairOutcome::Filled,
            None => return self.abort(Abort::NoJob, out),
        };
        let Some(end) = self.end(outcome) else { return };
        self.phase = Phase::Finish;
        out.push(Output::Finish(end));
    }

    fn end(&self, outcome: RepairOutcome) -> Option<FinishRepair> {
        let r = self.record.as_ref()?;
        Some(FinishRepair { ledger: r.id, version: r.version, target: self.me, outcome })
    }

    fn on_finished(&mut self, outcome: &MetaOutcome, out: &mut Vec<Output>) {
        match outcome {
            MetaOutcome::Committed(_) => {
                self.phase = Phase::Over;
                out.push(Output::Done { copied: self.copied });
            }
            // A version that moved, or an outcome that nobody knows: the record tells whether this repair is still under
            // way, and what was listed before counts no more.
            MetaOutcome::Unknown | MetaOutcome::Rejected(Rejection::VersionMismatch { .. }) => {
                self.start(out);
            }
            MetaOutcome::Rejected(Rejection::NotFound { .. }) => {
                self.phase = Phase::Over;
                out.push(Output::Gone);
            }
            MetaOutcome::Rejected(_) => self.abort(Abort::Refused, out),
        }
    }

    fn abort(&mut self, why: Abort, out: &mut Vec<Output>) {
        self.phase = Phase::Over;
        self.ops.clear();
        if let Some(end) = self.end(RepairOutcome::Abandoned) {
            out.push(Output::Abort(why, end));
        }
    }

    /// The version of the record as of which everything here is done.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.record.as_ref().map(|r| r.version)
    }
}

/// What M12 is about: the same payload under another header. Never in production.
fn encoded_anew(e: &Entry) -> Entry {
    let h = e.header();
    let before = h.cumulative_length - u64::from(h.body_len);
    Entry::encode(h.ledger, h.entry, h.entry.prev(), before, &e.envelope(), &[e.body()])
        .unwrap_or_else(|_| e.clone())
}

impl Hash for RepairCore {
    fn hash<H: Hasher>(&self, h: &mut H) {
        (self.phase, &self.record, &self.job, &self.wanted, &self.left, &self.ops).hash(h);
        (&self.skipped, self.fresh).hash(h);
    }
}
