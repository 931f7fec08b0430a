//! One look at the whole state: what is to be done now. Pure.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tidemill_ledger::{
    BookieTable,
    core::repair::{Copies, Needs, needs},
};
use tidemill_metadata::State;
use tidemill_types::{
    BookieId, BookieState, EntryId, FragmentSeq, LedgerId, LedgerRecord, LedgerState, Offset, Repair,
    Version,
    meta::{Command, FinishRepair, RepairOutcome, StartRepair},
};

use super::{
    lost::Away,
    progress::{Progress, Report},
};

/// Commands of one pass; the rest waits for the next one.
const COMMANDS: usize = 256;
/// Looks under way at once.
const LOOKS: usize = 64;
/// Comparisons under way at once.
const COMPARES: usize = 2;
/// Recoveries under way at once.
const RECOVERIES: usize = 16;
/// A worker that is away for longer has its repair taken away.
const WORKER_AWAY: Duration = Duration::from_secs(30);
/// Pause after something did not succeed, doubled up to the second one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// Times and bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// What an owner gets to roll by itself.
    pub(super) grace: Duration,
    /// A bookie without a session for so long is lost.
    pub(super) lost_after: Duration,
    /// Repairs with one target at once.
    pub(super) per_bookie: usize,
    /// All replicas of a closed ledger are compared so often.
    pub(super) compare_every: Duration,
}

/// What is remembered within a term.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) settings: Settings,
    away: Away,
    progress: Progress,
    /// Since when an owner has been expected to roll.
    waits: HashMap<LedgerId, Duration>,
    /// Ledgers that are left alone until a time, with the number of failures in a row.
    pauses: HashMap<LedgerId, Pause>,
    /// Looked at and found complete as of this: the version, and the limbo counts of its members together.
    pub(super) complete: HashMap<LedgerId, (Version, u64)>,
    pub(super) looking: HashSet<LedgerId>,
    pub(super) comparing: HashSet<LedgerId>,
    /// When the replicas of a ledger are compared next; at once when it is not here.
    pub(super) compare_at: HashMap<LedgerId, Duration>,
    pub(super) recovering: HashSet<LedgerId>,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Duration,
    failures: u32,
    /// An ensemble that changed is progress.
    seq: FragmentSeq,
    /// The target of the last try: another one is preferred.
    target: Option<BookieId>,
}

/// What a pass brings.
#[derive(Debug, Default)]
pub(super) struct Pass {
    pub(super) commands: Vec<Command>,
    pub(super) looks: Vec<LedgerRecord>,
    pub(super) compares: Vec<LedgerRecord>,
    pub(super) recoveries: Vec<(LedgerId, Offset)>,
    pub(super) table: Arc<BookieTable>,
    pub(super) report: Report,
}

impl Memory {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            away: Away::default(),
            progress: Progress::default(),
            waits: HashMap::new(),
            pauses: HashMap::new(),
            complete: HashMap::new(),
            looking: HashSet::new(),
            comparing: HashSet::new(),
            compare_at: HashMap::new(),
            recovering: HashSet::new(),
        }
    }

    /// Looks at everything.
    pub(super) fn pass(&mut self, state: &State, now: Duration) -> Pass {
        self.away.see(state, now);
        let table = Arc::new(BookieTable::from_members(state.members()));
        let mut pass = Pass { table: table.clone(), ..Pass::default() };
        for bookie in self.away.lost(state, self.settings.lost_after, now) {
            tracing::warn!(%bookie, "a bookie has been away for too long: it is declared lost");
            let (state, restarting) = (BookieState::Lost, false);
            pass.commands.push(Command::SetMemberState { member: bookie, state, restarting });
        }
        let mut busy: BTreeMap<BookieId, usize> = BTreeMap::new();
        for r in state.repairs(None).filter_map(|l| l.repair.as_ref()) {
            *busy.entry(r.target).or_default() += 1;
        }
        let waits = std::mem::take(&mut self.waits);
        for l in state.ledgers() {
            self.ledger(state, &table, l, now, &waits, &mut busy, &mut pass);
        }
        // What needs nothing any more is forgotten.
        self.pauses.retain(|l, _| state.ledger(*l).is_some());
        self.complete.retain(|l, (v, _)| state.ledger(*l).is_some_and(|r| r.version == *v));
        self.compare_at.retain(|l, _| state.ledger(*l).is_some());
        pass.report = self.progress.finish(now);
        pass
    }

    #[expect(clippy::too_many_arguments, reason = "one pass's parts")]
    fn ledger(
        &mut self,
        state: &State,
        table: &BookieTable,
        l: &LedgerRecord,
        now: Duration,
        waits: &HashMap<LedgerId, Duration>,
        busy: &mut BTreeMap<BookieId, usize>,
        pass: &mut Pass,
    ) {
        let Some(partition) = state.partition(l.partition) else { return };
        let linked = partition.chain.iter().find(|c| c.ledger == l.id);
        if linked.is_none() && l.epoch < partition.epoch {
            // In no chain and of an older epoch: nobody can link it any more (M23), so nothing was ever added to it.
            if pass.commands.len() < COMMANDS {
                pass.commands.push(Command::RemoveLedger { ledger: l.id, version: l.version });
            }
            return;
        }
        let copies = state.topic(l.partition.topic).map_or(1, |t| usize::from(t.config.replication.copies));
        let bytes = l.length.unwrap_or(0);
        if let Some(repair) = &l.repair {
            self.progress.needs(l.id, bytes, state.wall_ms());
            self.progress.repairing();
            if self.is_stale(table, repair, now) && pass.commands.len() < COMMANDS {
                tracing::info!(ledger = %l.id, target = %repair.target, "a repair is taken from its worker");
                pass.commands.push(Command::FinishRepair(FinishRepair {
                    ledger: l.id,
                    version: l.version,
                    target: repair.target,
                    outcome: RepairOutcome::Abandoned,
                }));
            }
            return;
        }
        let pause = self.pauses.get(&l.id).copied().filter(|p| p.seq == l.fragment_seq);
        let per_bookie = self.settings.per_bookie;
        let room = |b: BookieId| {
            busy.get(&b).copied().unwrap_or(0) < per_bookie && table.get(b).is_some_and(|b| b.live)
        };
        let other = |b: BookieId| room(b) && pause.is_none_or(|p| p.target != Some(b));
        let mut n = needs(l, table, copies, other);
        if n.copies == Copies::Busy {
            n = needs(l, table, copies, room);
        }
        if self.complete.get(&l.id) == Some(&(l.version, limbo_counts(l, table))) {
            n.look = false;
        }
        let ownerless = l.state != LedgerState::Closed
            && linked.is_some()
            && partition.owner.is_none_or(|o| !state.is_live(o.session));
        if n.none() && !ownerless {
            self.pauses.remove(&l.id);
            let holds = l.state == LedgerState::Closed && l.last_entry.is_some_and(|e| e >= EntryId::FIRST);
            if holds
                && self.compare_at.get(&l.id).is_none_or(|at| *at <= now)
                && self.comparing.len() < COMPARES
                && self.comparing.insert(l.id)
            {
                pass.compares.push(l.clone());
            }
            return;
        }
        if !n.none() {
            self.progress.needs(l.id, bytes, state.wall_ms());
            if n.copies == Copies::NoTarget {
                self.progress.stuck();
            }
        }
        if n.close.is_some() || ownerless {
            let since = waits.get(&l.id).copied().unwrap_or(now);
            self.waits.insert(l.id, since);
            let base = linked.map_or(Offset(0), |c| c.base_offset);
            if now.saturating_sub(since) >= self.settings.grace
                && pause.is_none_or(|p| p.until <= now)
                && pass.recoveries.len() + self.recovering.len() < RECOVERIES
                && self.recovering.insert(l.id)
            {
                pass.recoveries.push((l.id, base));
                return;
            }
        }
        if pause.is_none_or(|p| p.until <= now) && pass.commands.len() < COMMANDS {
            self.act(l, n, now, busy, pass);
        }
    }

    fn act(
        &mut self,
        l: &LedgerRecord,
        n: Needs,
        now: Duration,
        busy: &mut BTreeMap<BookieId, usize>,
        pass: &mut Pass,
    ) {
        match n.copies {
            Copies::Target { bookie, limbo_count } => {
                *busy.entry(bookie).or_default() += 1;
                // Taken back by the change of the ensemble that ends it; until then the next try waits.
                self.pause(l.id, l.fragment_seq, Some(bookie), now);
                pass.commands.push(start(l, bookie, limbo_count));
            }
            Copies::Enough | Copies::Busy | Copies::NoTarget
                if n.look && self.looking.len() < LOOKS && self.looking.insert(l.id) =>
            {
                pass.looks.push(l.clone());
            }
            Copies::Enough | Copies::Busy | Copies::NoTarget => {}
        }
    }

    /// The next try waits, longer with each one.
    pub(super) fn pause(
        &mut self,
        ledger: LedgerId,
        seq: FragmentSeq,
        target: Option<BookieId>,
        now: Duration,
    ) {
        let failures = self.pauses.get(&ledger).filter(|p| p.seq == seq).map_or(0, |p| p.failures + 1);
        let wait = FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(LAST_PAUSE);
        self.pauses.insert(ledger, Pause { until: now + wait, failures, seq, target });
    }

    /// It went well: no pause.
    pub(super) fn unpause(&mut self, ledger: LedgerId) {
        self.pauses.remove(&ledger);
    }

    /// Whether nobody works at it any more, or in vain: the quorum would refuse its end.
    fn is_stale(&self, table: &BookieTable, repair: &Repair, now: Duration) -> bool {
        let gone = |b: BookieId| {
            table.get(b).is_none_or(|b| matches!(b.state, BookieState::Lost | BookieState::Retired))
                || self.away.longer(b, WORKER_AWAY, now)
        };
        gone(repair.target)
            || gone(repair.worker)
            || table.get(repair.target).is_some_and(|b| b.limbo_count != repair.limbo_count)
    }
}

/// The repair is worked at by the bookie that gets the copies.
pub(super) fn start(l: &LedgerRecord, target: BookieId, limbo_count: u32) -> Command {
    Command::StartRepair(StartRepair {
        ledger: l.id,
        version: l.version,
        target,
        limbo_count,
        worker: target,
    })
}

/// Changes when a member came out of a boot with less than it had.
pub(super) fn limbo_counts(l: &LedgerRecord, table: &BookieTable) -> u64 {
    let members = l.fragments.iter().flat_map(|f| &f.ensemble);
    members.filter_map(|b| table.get(*b)).map(|b| u64::from(b.limbo_count)).sum()
}
