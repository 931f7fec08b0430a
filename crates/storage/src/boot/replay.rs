//! Building the ledgers of a lane from directories, a checkpoint and scanned groups.

use std::{collections::BTreeMap, sync::Arc};

use tidemill_types::{EntryId, LedgerId};

use super::lane::Unsealed;
use crate::{
    error::OpenError,
    format::{
        index::{self, IndexRow, Place, Run},
        record::Record,
        scan::scan,
        states::{Deletion, StateRow, States},
    },
    lane::Hidden,
    ledger::Ledger,
    report::Loss,
    segment::{Extent, Segment},
};

type Rows = BTreeMap<(LedgerId, i64), (Place, i64)>;

pub(super) struct Replay<'a> {
    lane: u16,
    ledgers: &'a mut BTreeMap<LedgerId, Arc<Ledger>>,
    pub(super) losses: &'a mut Vec<Loss>,
    hidden: BTreeMap<LedgerId, Hidden>,
    segments: BTreeMap<u32, Arc<Segment>>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(
        lane: u16,
        ledgers: &'a mut BTreeMap<LedgerId, Arc<Ledger>>,
        losses: &'a mut Vec<Loss>,
        states: &States,
    ) -> Self {
        let hidden = states
            .deletions
            .iter()
            .map(|(&l, &deletion)| (LedgerId(l), Hidden { deletion, segments: Vec::new() }))
            .collect();
        let mut replay = Self { lane, ledgers, losses, hidden, segments: BTreeMap::new() };
        for (&ledger, &row) in &states.ledgers {
            replay.state(LedgerId(ledger), row);
        }
        replay
    }

    /// The handle, if it may be on this lane.
    fn ledger(&mut self, ledger: LedgerId) -> Option<Arc<Ledger>> {
        let lane = self.lane;
        let l = self.ledgers.entry(ledger).or_insert_with(|| Arc::new(Ledger::new(ledger, lane, false)));
        if l.lane == lane {
            return Some(Arc::clone(l));
        }
        let loss = Loss::LedgerOnTwoLanes { ledger };
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
        None
    }

    fn state(&mut self, ledger: LedgerId, row: StateRow) {
        if let Some(l) = self.ledger(ledger) {
            l.state.lock().apply_checkpoint(row);
        }
    }

    /// Whether a deletion hides what this segment holds of a ledger; notes the segment if so.
    fn hides(&mut self, ledger: LedgerId, segment: u32) -> bool {
        match self.hidden.get_mut(&ledger) {
            Some(h) if h.deletion.hides(segment) => {
                if !h.segments.contains(&segment) {
                    h.segments.push(segment);
                }
                true
            }
            _ => false,
        }
    }

    fn run(&mut self, segment: &Segment, run: &Run) {
        if self.hides(run.ledger, segment.number) {
            return;
        }
        let Some(ledger) = self.ledger(run.ledger) else { return };
        let mut state = ledger.state.lock();
        state.lac = state.lac.max(run.max_lac);
        state.add_extent(Extent::of(run, segment.number));
        segment.add_live(i64::from(run.bytes));
    }

    pub(super) fn sealed(&mut self, segment: &Arc<Segment>, runs: &[Run]) {
        self.segments.insert(segment.number, Arc::clone(segment));
        for run in runs {
            self.run(segment, run);
        }
    }

    /// Scans a segment without a footer.
    pub(super) fn scan(&mut self, segment: &Arc<Segment>) -> Result<Unsealed, OpenError> {
        self.segments.insert(segment.number, Arc::clone(segment));
        let mut rows = Rows::new();
        let end = scan(&*segment.file, segment.uuid, segment.first_group, &mut |record, offset| {
            self.record(segment.number, record, offset, &mut rows);
        })
        .map_err(|e| OpenError::io("reading", &segment.path, e))?;
        let rows: Vec<IndexRow> = rows
            .into_iter()
            .map(|((ledger, entry), (place, lac))| IndexRow { ledger, entry, place, lac })
            .collect();
        let built = index::build(segment.uuid, &rows);
        for run in &built.runs {
            self.run(segment, run);
        }
        Ok(Unsealed { segment: Arc::clone(segment), end, built })
    }

    fn record(&mut self, segment: u32, record: Record, offset: u64, rows: &mut Rows) {
        match record {
            Record::Add { header, len } => {
                if !self.hides(header.ledger, segment) {
                    let place = Place { offset: u32::try_from(offset).unwrap_or(u32::MAX), len };
                    rows.insert((header.ledger, header.entry.0), (place, header.lac.0));
                }
            }
            Record::Fence { ledger } => {
                if !self.hides(ledger, segment) {
                    self.state(ledger, StateRow { fenced: true, explicit_lac: -1 });
                }
            }
            Record::Lac { ledger, lac } => {
                if !self.hides(ledger, segment) {
                    self.state(ledger, StateRow { fenced: false, explicit_lac: lac.0 });
                }
            }
            Record::Collect { ledger, bound } => {
                let last = (ledger, i64::MAX);
                let gone: Vec<_> = rows.range((ledger, EntryId::NONE.0)..=last).map(|(k, _)| *k).collect();
                for key in gone {
                    rows.remove(&key);
                }
                self.collected(ledger, Deletion { bound, home: segment });
            }
        }
    }

    fn collected(&mut self, ledger: LedgerId, deletion: Deletion) {
        let h = self.hidden.entry(ledger).or_insert(Hidden { deletion, segments: Vec::new() });
        if deletion.bound < h.deletion.bound {
            return;
        }
        h.deletion = deletion;
        let Some(l) = self.ledgers.get(&ledger).filter(|l| l.lane == self.lane) else { return };
        let mut state = l.state.lock();
        for x in &state.extents {
            if let Some(s) = self.segments.get(&x.segment) {
                s.add_live(-i64::from(x.bytes));
            }
            if !h.segments.contains(&x.segment) {
                h.segments.push(x.segment);
            }
        }
        state.hide(deletion);
        drop(state);
        self.ledgers.remove(&ledger);
    }

    pub(super) fn highest_bound(&self) -> u32 {
        self.hidden.values().map(|h| h.deletion.bound).max().unwrap_or(0)
    }

    /// The deletions that still hide something.
    pub(super) fn finish(mut self) -> BTreeMap<LedgerId, Hidden> {
        self.hidden.retain(|_, h| !h.segments.is_empty());
        self.hidden
    }
}
