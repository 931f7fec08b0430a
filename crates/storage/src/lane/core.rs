//! The part of a lane that only its runner touches: what is open, what was touched, what is due.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tidemill_types::LedgerId;

use super::{Lane, queue::Op, roll::RollError};
use crate::{
    counters::add,
    error::Poison,
    format::{BLOCK, group::GroupBuilder},
    ledger::Ledger,
    segment::Segment,
    shared::Shared,
};

/// The segment that takes groups.
#[derive(Debug)]
pub(crate) struct ActiveSegment {
    pub(crate) segment: Arc<Segment>,
    /// End of the last synced group.
    pub(crate) data_end: u64,
    /// Its number, or the first one minus one.
    pub(crate) last_group: u64,
    /// Entries in it.
    pub(crate) rows: u64,
    /// A write failed, or it was scanned at boot: nothing is appended any more (R19).
    pub(crate) must_seal: bool,
    /// It was the reserve: plain adds stay out.
    pub(crate) is_reserve: bool,
    /// A group of plain adds did not fit and there was no room for another segment.
    pub(crate) is_full: bool,
}

/// What the runner of a lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There may be more: run again.
    Again,
    /// Nothing to do before this time or the next operation.
    At(Option<Duration>),
    /// Never again.
    Stopped,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) lane: Arc<Lane>,
    pub(crate) active: Option<ActiveSegment>,
    /// Ledgers with rows in the active segment.
    pub(crate) touched: BTreeMap<LedgerId, Arc<Ledger>>,
    pub(crate) builder: GroupBuilder,
    pub(crate) next_group: u64,
    /// When the closing group is due (R19).
    pub(crate) closing_at: Option<Duration>,
    /// When the free space is looked at again.
    pub(crate) space_at: Duration,
    /// Entries whose bytes are in memory, the oldest first.
    pub(crate) recent: VecDeque<(Arc<Ledger>, i64, usize)>,
    pub(crate) recent_bytes: usize,
    /// Bytes of the reserve, 0 = there is none.
    pub(crate) reserve: u64,
    pub(crate) stopped: bool,
}

impl Core {
    pub(crate) fn new(lane: Arc<Lane>, active: Option<ActiveSegment>, next_group: u64) -> Self {
        Self {
            lane,
            active,
            touched: BTreeMap::new(),
            builder: GroupBuilder::default(),
            next_group,
            closing_at: None,
            space_at: Duration::ZERO,
            recent: VecDeque::new(),
            recent_bytes: 0,
            reserve: 0,
            stopped: false,
        }
    }

    /// One turn: a commit group of what is queued, or a closing group when it is due.
    pub(crate) fn step(&mut self, shared: &Shared) -> Next {
        if self.stopped || shared.poisoned().is_some() {
            self.stop();
            return Next::Stopped;
        }
        match self.turn(shared) {
            Ok(next) => next,
            Err(Poison { .. }) => {
                self.stop();
                Next::Stopped
            }
        }
    }

    fn turn(&mut self, shared: &Shared) -> Result<Next, Poison> {
        let now = shared.config.clock.boottime();
        if now >= self.space_at {
            self.look_at_space(shared, now);
        }
        let mut ops: Vec<Op> = Vec::new();
        self.lane.queue.take(shared.config.group_bytes, &mut ops);
        if !ops.is_empty() {
            self.commit(shared, ops)?;
            return Ok(Next::Again);
        }
        if self.lane.queue.stopping() && self.lane.queue.is_empty() {
            self.end(shared)?;
            self.stop();
            return Ok(Next::Stopped);
        }
        if self.closing_at.is_some_and(|at| now >= at) {
            self.close_group(shared)?;
        }
        Ok(Next::At(self.due()))
    }

    /// An orderly end leaves a sealed segment, so that the next boot reads a footer and scans nothing.
    fn end(&mut self, shared: &Shared) -> Result<(), Poison> {
        if self.active.as_ref().is_some_and(|a| a.data_end > BLOCK) {
            return match self.seal(shared) {
                // Not sealed: it will be scanned, as after a crash.
                Ok(()) | Err(RollError::Stalled) => Ok(()),
                Err(RollError::Fatal(p)) => Err(p),
            };
        }
        Ok(())
    }

    /// Ends the lane; what is queued gets no answer.
    fn stop(&mut self) {
        self.stopped = true;
        self.lane.queue.abandon();
    }

    fn due(&self) -> Option<Duration> {
        let space = self.is_short_of_space().then_some(self.space_at);
        [self.closing_at, space].into_iter().flatten().min()
    }

    /// Keeps the newest bytes in memory, within the limit.
    pub(crate) fn remember(&mut self, shared: &Shared, ledger: &Arc<Ledger>, entry: i64, len: usize) {
        self.recent.push_back((Arc::clone(ledger), entry, len));
        self.recent_bytes += len;
        while self.recent_bytes > shared.config.recent_bytes {
            let Some((ledger, entry, len)) = self.recent.pop_front() else { break };
            self.recent_bytes -= len;
            let mut state = ledger.state.lock();
            if let Some(a) = &mut state.active
                && let Ok(i) = a.rows.binary_search_by_key(&entry, |r| r.entry)
            {
                a.rows[i].bytes = None;
            }
        }
    }

    pub(crate) fn count_written(shared: &Shared, bytes: u64) {
        add(&shared.counters.bytes_written, bytes);
    }
}
