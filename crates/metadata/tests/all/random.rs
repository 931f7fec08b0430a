//! Random sequences of commands: what must hold in every state and from one state to the next.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidemill_metadata::State;
use tidemill_types::meta::{
    AcquireItem, Adoption, Append, Assignment, BookieReport, BookieSpec, Change, ClaimRelease, CloseLedger,
    Command, Compaction, CompactionStep, ControlAction, ControlCommand, CreateLedger, EnsembleChange,
    FinishRepair, MetaView, RecoveryStart, Rejection, Release, RepairOutcome, Request, Roll, StartRepair,
    TakeOver, TombstoneRef, TopicDeletion, TopicWish,
};
use tidemill_types::{
    BookieId, BookieState, EntryId, EntryRange, Epoch, GroupConfig, LedgerId, LedgerRecord, LedgerState,
    MemberRole, Offset, PartitionId, RequestId, Revision, SessionId, TopicConfig, TopicId, Version,
};

use crate::harness::*;

/// One step: what to do, and numbers from which its fields are drawn with the state at hand.
type Step = (u8, [u8; 6]);

fn pick<T: Clone>(all: &[T], n: u8) -> Option<T> {
    (!all.is_empty()).then(|| all[usize::from(n) % all.len()].clone())
}

/// Mostly the true value, sometimes one beside it.
fn near(value: u64, n: u8) -> u64 {
    match n % 16 {
        0 => value + 1,
        1 => value.saturating_sub(1),
        _ => value,
    }
}

struct Drawer<'a> {
    state: &'a State,
    n: [u8; 6],
}

impl Drawer<'_> {
    fn partition(&self) -> PartitionId {
        let all: Vec<_> = self.state.partitions().map(|p| p.id).collect();
        pick(&all, self.n[0]).unwrap_or(p(0))
    }

    fn epoch(&self, id: PartitionId) -> Epoch {
        Epoch(near(self.state.partition(id).map_or(0, |p| p.epoch.0), self.n[1]))
    }

    fn ledger(&self) -> Option<LedgerRecord> {
        let all: Vec<_> = self.state.ledgers().cloned().collect();
        pick(&all, self.n[0])
    }

    /// Mostly the partition's youngest ledger: the one that was created ahead.
    fn ahead(&self, id: PartitionId) -> LedgerId {
        let all: Vec<_> = self.state.ledgers().filter(|l| l.partition == id).map(|l| l.id).collect();
        if self.n[2].is_multiple_of(5) { pick(&all, self.n[3]) } else { all.last().copied() }
            .unwrap_or(LedgerId(1))
    }

    fn last(&self, id: PartitionId) -> Option<(LedgerRecord, i64)> {
        let e = self.state.partition(id)?.chain.last()?;
        Some((self.state.ledger(e.ledger)?.clone(), e.base_offset.0))
    }

    fn closing(&self, l: &LedgerRecord) -> CloseLedger {
        let start = l.fragments.last().map_or(0, |f| f.first_entry.0);
        let last = start - 1 + i64::from(self.n[4] % 4);
        let records = if last < 0 { 0 } else { u64::from(self.n[5] % 3) };
        let mut close = closing(l.id, Version(near(l.version.0, self.n[3])), last, records);
        if self.n[5].is_multiple_of(4) && last >= 0 {
            close.under = vec![EntryRange { first: EntryId(last / 2), last: EntryId(last) }];
        }
        if self.n[2].is_multiple_of(3) && l.state == LedgerState::InRecovery {
            close.fragments = l.fragments.clone();
            let new = member(u32::from(self.n[1] % 6) + 1);
            if let Some(f) = close.fragments.last_mut()
                && !f.ensemble.contains(&new)
            {
                f.ensemble[0] = new;
                let count = self.state.member(new).map_or(0, |m| m.limbo_count);
                close.limbo_counts = vec![(new, count)];
            }
        }
        close
    }

    fn base(&self, last: Option<(i64, u64)>) -> Offset {
        let base = last.map_or(0, |(b, r)| b + i64::try_from(r).unwrap());
        Offset(near(base.cast_unsigned(), self.n[2]).cast_signed())
    }

    fn bookies(&self, count: usize) -> Vec<BookieId> {
        (0..count).map(|i| member((u32::from(self.n[3]) + u32::try_from(i).unwrap()) % 6 + 1)).collect()
    }
}

fn boot_or_open(d: &Drawer<'_>) -> Command {
    let n = u32::from(d.n[0] % 8) + 1;
    if n > 6 {
        return Command::OpenSession(member_spec(n + 4, MemberRole::Broker, u64::from(d.n[1]) + 1));
    }
    let known = d.state.member(member(n));
    match known.and_then(|m| m.pending_incarnation) {
        Some(pending) if !d.n[1].is_multiple_of(3) => {
            Command::OpenSession(member_spec(n, MemberRole::Bookie, pending.0))
        }
        _ => {
            let last = known.map(|m| m.incarnation.0).filter(|i| *i > 0);
            let found_loss = d.n[2].is_multiple_of(5);
            Command::BookieBoot(BookieSpec {
                found_loss,
                ..boot_spec(n, last, 1_000 + u64::from(d.n[3]) * 256 + u64::from(d.n[4]))
            })
        }
    }
}

fn member_state(d: &Drawer<'_>) -> Command {
    use BookieState::{Draining, Limbo, Lost, Retired, Ro, Rw};
    let all: Vec<_> = d.state.members().map(|m| m.id).collect();
    let state = [Rw, Rw, Rw, Ro, Draining, Lost, Retired, Limbo][usize::from(d.n[1] % 8)];
    let member = pick(&all, d.n[0]).unwrap_or(member(1));
    Command::SetMemberState { member, state, restarting: d.n[2].is_multiple_of(2) }
}

/// A swap of the front of a chain for closed ledgers in no chain, or their removal.
fn compaction(d: &Drawer<'_>, id: PartitionId) -> Command {
    let chain: Vec<LedgerId> =
        d.state.partition(id).map(|p| p.chain.iter().map(|e| e.ledger).collect()).unwrap_or_default();
    let unlinked = d.state.ledgers().filter(|l| l.partition == id && !chain.contains(&l.id));
    let ledgers: Vec<LedgerId> = unlinked.map(|l| l.id).take(1 + usize::from(d.n[4] % 2)).collect();
    let step = if d.n[2].is_multiple_of(2) {
        CompactionStep::Discard { ledgers }
    } else {
        let old = chain.into_iter().take(1 + usize::from(d.n[5] % 2)).collect();
        CompactionStep::Swap { old, new: ledgers }
    };
    Command::Compact(Compaction { partition: id, epoch: d.epoch(id), step })
}

fn repair(d: &Drawer<'_>) -> Option<Command> {
    let l = d.ledger()?;
    let version = Version(near(l.version.0, d.n[1]));
    Some(match &l.repair {
        None if d.n[2].is_multiple_of(4) => Command::MarkChecked { ledger: l.id, version },
        None => {
            let target = member(u32::from(d.n[3] % 6) + 1);
            let limbo_count = d.state.member(target).map_or(0, |m| m.limbo_count);
            Command::StartRepair(StartRepair { ledger: l.id, version, target, limbo_count, worker: target })
        }
        Some(r) => {
            let fragments: Vec<_> =
                l.fragments.iter().map(|f| f.first_entry).take(1 + usize::from(d.n[4] % 2)).collect();
            let outcome = match d.n[5] % 5 {
                0 => RepairOutcome::Abandoned,
                1 => RepairOutcome::Filled,
                2 => RepairOutcome::Grown { fragments },
                _ => RepairOutcome::Replaced { from: l.fragments[0].ensemble[0], fragments },
            };
            Command::FinishRepair(FinishRepair { ledger: l.id, version, target: r.target, outcome })
        }
    })
}

fn control(d: &Drawer<'_>) -> Command {
    let n = d.n;
    let names = ["t", "u", "v"];
    let name = name(names[usize::from(n[0] % 3)]);
    let epoch = match n[5] % 6 {
        0 => Some(near(d.state.operator().epoch, n[4])),
        _ => None,
    };
    let of_topic = pick(&d.state.topic_controls().cloned().collect::<Vec<_>>(), n[1]);
    let reference = of_topic.map(|c| TombstoneRef {
        topic: c.topic,
        version: Version(near(c.version.0, n[2])),
        due: n[3].is_multiple_of(2),
    });
    let reference = reference.unwrap_or(TombstoneRef { topic: TopicId(1), version: Version(1), due: false });
    let uid = u32::from(n[1] % 2);
    let action = match n[3] % 9 {
        0..=2 => ControlAction::ApplyTopics(vec![TopicWish {
            name,
            partitions: u32::from(n[2] % 4) + 1,
            config: TopicConfig::default(),
            claim: (!n[2].is_multiple_of(3)).then(|| claim(uid)),
            adoption: [Adoption::Fail, Adoption::IfMatches, Adoption::Take][usize::from(n[4] % 3)],
        }]),
        3 | 4 => ControlAction::TombstoneTopics(vec![TopicDeletion {
            name,
            uid: (!n[2].is_multiple_of(3)).then(|| claim(uid).uid),
            purge_after_ms: i64::from(n[4]) * 20,
        }]),
        5 => ControlAction::PurgeTopics(vec![reference]),
        6 => ControlAction::RestoreTopics(vec![reference]),
        7 => ControlAction::ReleaseClaims(vec![ClaimRelease { name, uid: claim(uid).uid }]),
        _ if n[4].is_multiple_of(3) => ControlAction::RaiseFeatureLevel { level: u32::from(n[2] % 3) + 2 },
        _ if n[4] % 3 == 1 => ControlAction::AcquireOperatorEpoch { holder: "o".into() },
        _ => ControlAction::AnnounceRestart {
            member: member(u32::from(n[0] % 7) + 1),
            restarting: n[1].is_multiple_of(2),
        },
    };
    Command::Control(ControlCommand { epoch, action })
}

/// The sender that fits, mostly: the owner's session for what owners send.
fn draw(state: &State, (kind, n): Step) -> Option<(SessionId, Command)> {
    let d = Drawer { state, n };
    let id = d.partition();
    let sessions: Vec<_> = state.sessions().map(|(s, _)| s).collect();
    let any = pick(&sessions, n[5]).unwrap_or(SessionId(1));
    let owner = match state.partition(id).and_then(|p| p.owner) {
        Some(o) if !n[5].is_multiple_of(12) => o.session,
        _ => any,
    };
    let quorum = SessionId::NONE;
    let broker = member(if n[1].is_multiple_of(2) { 11 } else { 12 });
    Some(match kind % 27 {
        25 | 26 => (if n[5].is_multiple_of(2) { quorum } else { any }, control(&d)),
        0 => (quorum, boot_or_open(&d)),
        1 => (quorum, member_state(&d)),
        2 if n[1].is_multiple_of(4) => {
            let (session, member) = state.sessions().nth(usize::from(n[0]) % sessions.len().max(1))?;
            (quorum, Command::ExpireSession { session, member })
        }
        2 => (quorum, boot_or_open(&d)),
        3 if n[1].is_multiple_of(8) => (any, Command::CloseSession),
        3 => (quorum, Command::Tick { wall_ms: i64::from(n[0]) * 100, jump: n[1].is_multiple_of(4) }),
        4 if n[1].is_multiple_of(6) => {
            let topics: Vec<_> = state.topics().map(|t| t.id).collect();
            (any, Command::DeleteTopic { topic: pick(&topics, n[0])? })
        }
        4 if n[1].is_multiple_of(2) => {
            let topics: Vec<_> = state.topics().map(|t| t.id).collect();
            let partitions = Some(u32::from(n[2] % 4) + 1);
            (
                any,
                Command::AlterTopic { topic: pick(&topics, n[0])?, version: None, partitions, config: None },
            )
        }
        4 => {
            let (name, config) = (name(["t", "u", "v"][usize::from(n[0] % 3)]), TopicConfig::default());
            (any, Command::CreateTopic { name, partitions: 2, config })
        }
        5 | 6 => (quorum, Command::Assign(vec![Assignment { partition: id, broker: Some(broker) }])),
        7..=9 => {
            let assigned = state.partition(id).and_then(|p| p.assigned);
            let s = assigned.and_then(|b| state.member(b)).and_then(|m| m.session).unwrap_or(any);
            (s, Command::Acquire(vec![AcquireItem { partition: id, seen: d.epoch(id) }]))
        }
        10 => (owner, Command::Release(vec![Release { partition: id, epoch: d.epoch(id) }])),
        11..=13 => {
            let ensemble = d.bookies(3);
            (
                owner,
                Command::CreateLedger(CreateLedger {
                    partition: id,
                    epoch: d.epoch(id),
                    ensemble,
                    ack_quorum: 2,
                }),
            )
        }
        14 => {
            let l = d.ledger()?;
            let f = l.fragments.last()?;
            let (i, new) = (usize::from(n[2] % 3), member(u32::from(n[3] % 6) + 1));
            let mut ensemble = f.ensemble.clone();
            let old = *ensemble.get(i)?;
            ensemble[i] = new;
            let first_entry = EntryId(f.first_entry.0 + i64::from(n[4] % 3));
            let under = if n[4].is_multiple_of(2) && first_entry.0 > 0 {
                vec![EntryRange { first: EntryId(0), last: first_entry.prev() }]
            } else {
                Vec::new()
            };
            let version = Version(near(l.version.0, n[1]));
            let replaced = vec![(n[2] % 3, old)];
            (
                any,
                Command::ChangeEnsemble(EnsembleChange {
                    ledger: l.id,
                    version,
                    first_entry,
                    ensemble,
                    replaced,
                    under,
                }),
            )
        }
        15 => {
            let l = d.ledger()?;
            let start =
                |l: &LedgerRecord| RecoveryStart { ledger: l.id, version: Version(near(l.version.0, n[1])) };
            if n[2].is_multiple_of(2) {
                let more = d.ledger()?;
                (owner, Command::StartRecoveries(vec![start(&l), start(&more)]))
            } else {
                let RecoveryStart { ledger, version } = start(&l);
                (any, Command::StartRecovery { ledger, version })
            }
        }
        16 | 17 => {
            let (l, base) = d.last(id)?;
            let close = d.closing(&l);
            let link_ = link(d.ahead(id), d.base(Some((base, close.records))).0);
            let append = (n[3].is_multiple_of(2)).then_some(link_);
            (owner, Command::TakeOver(vec![TakeOver { partition: id, epoch: d.epoch(id), close, append }]))
        }
        18 | 19 => {
            let (l, base) = d.last(id)?;
            let close = d.closing(&l);
            let append = link(d.ahead(id), d.base(Some((base, close.records))).0);
            (owner, Command::Roll(Roll { partition: id, epoch: d.epoch(id), close, append }))
        }
        20 => {
            let close = d.closing(&d.ledger()?);
            let epoch = (n[1].is_multiple_of(2)).then(|| d.epoch(id));
            (owner, Command::Close { close, epoch })
        }
        21 => {
            let last = d.last(id);
            let base = d.base(last.as_ref().map(|(l, b)| (*b, l.records.unwrap_or(0))));
            let prev = last.map(|(l, _)| l.id);
            let append = link(d.ahead(id), base.0);
            (owner, Command::Append(Append { partition: id, epoch: d.epoch(id), prev, append }))
        }
        22 if n[1].is_multiple_of(3) => {
            let l = d.ledger()?;
            (any, Command::RemoveLedger { ledger: l.id, version: l.version })
        }
        22 if n[1] % 3 == 1 => {
            let to = Offset(state.partition(id)?.log_start.0 + i64::from(n[2] % 4));
            (owner, Command::AdvanceLogStart { partition: id, epoch: d.epoch(id), to })
        }
        22 if n[3].is_multiple_of(2) => (owner, compaction(&d, id)),
        22 => {
            let reports = state.members().filter_map(|m| {
                let lanes = vec![at(u32::from(n[0] % 6) + 1, 1, u64::from(n[2]))];
                Some(BookieReport { bookie: m.id, session: m.session?, lanes, free_bytes: u64::from(n[3]) })
            });
            (quorum, Command::ReportBookies(reports.collect()))
        }
        23 => {
            let name = group_name(["g", "h", "i"][usize::from(n[0] % 3)]);
            let current = state.group(&name).map_or(0, |g| g.version.0);
            let version = (!n[1].is_multiple_of(3)).then(|| Version(near(current, n[2])));
            if n[3].is_multiple_of(4) {
                (any, Command::RemoveGroup { name, version })
            } else {
                let config = GroupConfig { session_ms: Some(u32::from(n[4]) * 50), ..GroupConfig::default() };
                (any, Command::ConfigureGroup { name, version, config })
            }
        }
        _ => (any, repair(&d)?),
    })
}

/// What must hold from one state to the next.
fn check_step(before: &State, after: &State) {
    for l in before.ledgers() {
        let Some(new) = after.ledger(l.id) else { continue };
        assert!(new.version >= l.version);
        assert!(new.version > l.version || new == l, "a change without a new version");
        if l.state == LedgerState::Closed {
            assert_eq!(
                (new.state, new.last_entry, new.length, new.records),
                (l.state, l.last_entry, l.length, l.records)
            );
        }
        assert!(!(l.state == LedgerState::InRecovery && new.state == LedgerState::Open));
        assert!(new.fragment_seq >= l.fragment_seq);
    }
    for p in before.partitions() {
        let Some(new) = after.partition(p.id) else { continue };
        assert!(new.version > p.version || new == p, "a change without a new version");
        assert!(new.epoch >= p.epoch && new.epoch.0 <= p.epoch.0 + 1 && new.log_start >= p.log_start);
        // An owner changes only with the epoch, or to nobody.
        if new.epoch == p.epoch {
            assert!(new.owner == p.owner || new.owner.is_none());
        } else {
            assert!(
                p.owner.is_none_or(|o| !before.is_live(o.session)),
                "an epoch passed on under a live owner"
            );
        }
    }
    for g in before.groups() {
        let Some(new) = after.group(&g.name) else { continue };
        assert!(new.version > g.version || new == g || before.group(&g.name).is_none());
    }
    assert!(after.wall_ms() >= before.wall_ms());
    assert!(after.operator().epoch >= before.operator().epoch);
    assert!(after.feature_level() >= before.feature_level());
    for c in before.topic_controls() {
        let Some(new) = after.topic_control(c.topic) else { continue };
        assert!(new.version > c.version || new == c, "a change without a new version");
        // A claim passes from one holder to another only by being free in between.
        if let (Some(old), Some(new)) = (&c.claim, &new.claim) {
            assert_eq!(old.uid, new.uid);
        }
    }
    for m in before.members() {
        assert!(after.member(m.id).is_some_and(|n| n.limbo_count >= m.limbo_count));
        assert!(m.state != BookieState::Retired || after.member(m.id).unwrap().state == BookieState::Retired);
    }
    // Retired uuids are named nowhere.
    for m in after.members().filter(|m| m.state == BookieState::Retired) {
        assert_eq!(after.named_count(m.id), 0);
    }
}

/// The view of somebody who only follows the changes.
#[derive(Default)]
struct Watcher {
    members: BTreeMap<tidemill_types::MemberId, tidemill_types::Member>,
    topics: BTreeMap<tidemill_types::TopicId, tidemill_types::TopicRecord>,
    partitions: BTreeMap<PartitionId, tidemill_types::PartitionRecord>,
    groups: BTreeMap<tidemill_types::GroupName, tidemill_types::GroupRecord>,
    controls: BTreeMap<TopicId, tidemill_types::TopicControl>,
    wall_ms: i64,
}

impl Watcher {
    fn follow(&mut self, changes: &[Change]) {
        for c in changes {
            match c.clone() {
                Change::Topic(t) => drop(self.topics.insert(t.id, t)),
                Change::TopicRemoved(id) => {
                    self.topics.remove(&id);
                    self.controls.remove(&id);
                }
                Change::TopicControl(c) => drop(self.controls.insert(c.topic, c)),
                Change::Partition(p) => drop(self.partitions.insert(p.id, p)),
                Change::PartitionRemoved(id) => drop(self.partitions.remove(&id)),
                Change::Member(m) => drop(self.members.insert(m.id, m)),
                Change::MemberRemoved(id) => drop(self.members.remove(&id)),
                Change::Time(ms) => self.wall_ms = ms,
                Change::Group(g) => drop(self.groups.insert(g.name.clone(), g)),
                Change::GroupRemoved(name) => drop(self.groups.remove(&name)),
            }
        }
    }

    fn view(&self, of: &State) -> MetaView {
        MetaView {
            revision: of.revision(),
            cluster: of.cluster(),
            wall_ms: self.wall_ms,
            members: self.members.values().cloned().collect(),
            topics: self.topics.values().cloned().collect(),
            partitions: self.partitions.values().cloned().collect(),
            groups: self.groups.values().cloned().collect(),
        }
    }
}

#[derive(Default)]
struct Reached(BTreeMap<&'static str, u32>);

fn kind(command: &Command) -> &'static str {
    crate::golden::name_of_command(command)
}

/// Runs a sequence; every accepted command's name is counted.
fn run(steps: &[Step], retries: &[(u8, u8)], reached: &mut Reached) {
    let mut cluster = Cluster::new();
    cluster.bookie(5);
    cluster.bookie(6);
    cluster.control(ControlAction::RaiseFeatureLevel { level: tidemill_metadata::FEATURE_LEVEL });
    // Something to begin with: a chain that its owner works on.
    cluster.acquire(11, 0);
    let (l, (s, epoch)) = (cluster.create(0), cluster.owner(0));
    cluster.ok(s, append(epoch, None, l, 0));
    let mut state = cluster.state;
    let mut twin = State::decode(&state.snapshot().encode().unwrap()).unwrap();
    let mut watcher = Watcher::default();
    let view = state.view();
    watcher.follow(&view.members.into_iter().map(Change::Member).collect::<Vec<_>>());
    watcher.follow(&view.topics.into_iter().map(Change::Topic).collect::<Vec<_>>());
    watcher.follow(&view.partitions.into_iter().map(Change::Partition).collect::<Vec<_>>());
    let mut log: Vec<(Request, Result<_, _>)> = Vec::new();
    let mut revision = state.revision().0;
    for (i, step) in steps.iter().enumerate() {
        let Some((session, command)) = draw(&state, *step) else { continue };
        let request = Request { session, request: RequestId(1_000_000 + i as u64), command };
        revision += 1;
        let before = state.clone();
        let applied = state.apply(Revision(revision), &request);
        assert_eq!(twin.apply(Revision(revision), &request), applied);
        assert_eq!(state.check(), Ok(()), "after {request:?}");
        check_step(&before, &state);
        watcher.follow(&applied.changes);
        assert_eq!(watcher.view(&state), state.view());
        assert!(watcher.controls.values().eq(state.topic_controls()));
        if applied.result.is_ok() {
            *reached.0.entry(kind(&request.command)).or_default() += 1;
        }
        if session != SessionId::NONE {
            log.push((request, applied.result));
        }
        // A retry of any request so far: the first answer, or that nobody knows; never a second execution.
        for (_, which) in retries.iter().filter(|(at, _)| usize::from(*at) == i) {
            let Some((request, first)) = pick(&log, *which) else { continue };
            let mut expected = state.clone();
            revision += 1;
            expected.advance(Revision(revision));
            let again = state.apply(Revision(revision), &request);
            twin.apply(Revision(revision), &request);
            assert!(again.changes.is_empty());
            assert!(again.result == first || again.result == Err(Rejection::SessionExpired));
            assert_eq!(state.snapshot().encode().unwrap(), expected.snapshot().encode().unwrap());
        }
        if i % 25 == 24 {
            // The twin goes on from a snapshot, as a member does that was away.
            let bytes = state.snapshot().encode().unwrap();
            assert_eq!(twin.snapshot().encode().unwrap(), bytes);
            twin = State::decode(&bytes).unwrap();
        }
    }
    assert_eq!(twin.snapshot().encode().unwrap(), state.snapshot().encode().unwrap());
}

fn sequence(len: usize) -> impl Strategy<Value = (Vec<Step>, Vec<(u8, u8)>)> {
    let steps = proptest::collection::vec((any::<u8>(), any::<[u8; 6]>()), 1..len);
    (steps, proptest::collection::vec((any::<u8>(), any::<u8>()), 0..12))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn invariants_hold_over_any_sequence((steps, retries) in sequence(200)) {
        run(&steps, &retries, &mut Reached::default());
    }
}

/// The sequences are worth something only if most commands get through in them.
#[test]
fn the_sequences_reach_every_command() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut reached = Reached::default();
    for _ in 0..48 {
        let (steps, retries) = sequence(400).new_tree(&mut runner).unwrap().current();
        run(&steps, &retries, &mut reached);
    }
    for name in [
        "BookieBoot",
        "OpenSession",
        "CloseSession",
        "ExpireSession",
        "Tick",
        "ReportBookies",
        "SetMemberState",
        "CreateTopic",
        "AlterTopic",
        "DeleteTopic",
        "Assign",
        "Acquire",
        "Release",
        "CreateLedger",
        "ChangeEnsemble",
        "StartRecovery",
        "StartRecoveries",
        "TakeOver",
        "Roll",
        "Close",
        "Append",
        "AdvanceLogStart",
        "RemoveLedger",
        "StartRepair",
        "FinishRepair",
        "MarkChecked",
        "ConfigureGroup",
        "RemoveGroup",
        "Control",
    ] {
        assert!(reached.0.contains_key(name), "{name} never got through: {:?}", reached.0);
    }
}
