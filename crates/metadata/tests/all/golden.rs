//! Golden bytes: whatever was written once is read for ever.
//!
//! `golden.txt` holds one line per sample, its name and its bytes in hex. A new variant gets a new line; a line that is
//! there never changes. `UPDATE_GOLDEN=1` adds the lines that are missing, and only those.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use tidemill_metadata::{
    CodecError, State, decode_answer, decode_query, decode_request, decode_result, decode_watched,
    encode_answer, encode_query, encode_request, encode_result, encode_watched,
};
use tidemill_types::meta::*;
use tidemill_types::{
    BookieState, Cleanup, CleanupPolicy, ClusterId, EntryId, EntryRange, Epoch, Fragment, GroupRecord,
    Incarnation, LedgerId, LedgerState, MemberRole, Offset, OperatorEpoch, RequestId, Revision, SessionId,
    Tombstone, TopicConfig, TopicControl, TopicId, TopicRecord, Version,
};

use crate::harness::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(s: &str) -> Vec<u8> {
    (0..s.len() / 2).map(|i| u8::from_str_radix(&s[2 * i..2 * i + 2], 16).unwrap()).collect()
}

macro_rules! names {
    ($fn:ident, $ty:ident: $($unit:ident)* ; $($tuple:ident)* ; $($fields:ident)*) => {
        /// Exhaustive: a new variant does not compile until it is named here, and then asks for a sample.
        pub(crate) fn $fn(v: &$ty) -> &'static str {
            match v {
                $($ty::$unit => stringify!($unit),)*
                $($ty::$tuple(..) => stringify!($tuple),)*
                $($ty::$fields { .. } => stringify!($fields),)*
            }
        }
    };
}

names!(name_of_command, Command:
    CloseSession;
    BookieBoot OpenSession ReportBookies Assign Acquire Release CreateLedger ChangeEnsemble TakeOver Roll Append
        StartRepair FinishRepair Control StartRecoveries Compact;
    Init ExpireSession Tick SetMemberState CreateTopic AlterTopic DeleteTopic StartRecovery Close AdvanceLogStart
        AllocateProducerIds RemoveLedger MarkChecked ConfigureGroup RemoveGroup EndSession);
names!(name_of_reply, Reply:
    Done;
    Topic Acquired Each Ledger Partition Group Control Ledgers;
    Session BookieBoot ProducerIds);
names!(name_of_rejection, Rejection:
    SessionExpired OutcomeUnknown NotInitialised;
    ;
    WrongCluster NotFound Exists EpochMismatch VersionMismatch LedgerState OtherEnd NotAvailable BookieNotEligible
        Conflict Invalid StaleOperatorEpoch Claimed Tombstoned FeatureLevel);
names!(name_of_change, Change: ;
    Topic TopicRemoved Partition PartitionRemoved Member MemberRemoved Time Group GroupRemoved TopicControl; );
names!(name_of_query, Query: Cluster Members View;
    TopicByName Topic Partition Ledger Group Control; Topics LedgersOf Ledgers Groups Repairs);
names!(name_of_answer, Answer: ; Cluster Members Topic Topics Partition Ledger Ledgers View Group
    Groups Control; );
names!(name_of_action, ControlAction:
    CheckEpoch;
    ApplyTopics TombstoneTopics RestoreTopics PurgeTopics ReleaseClaims;
    AcquireOperatorEpoch AnnounceRestart RaiseFeatureLevel);
names!(name_of_control_reply, ControlReply: Done; Epoch Applied Tombstoned Each Released FeatureLevel; );
names!(name_of_control_query, ControlQuery: Operator; TopicsNamed Try BookieStanding; Topics);
names!(name_of_control_answer, ControlAnswer: ; Operator Topics Tried BookieStanding; );
names!(name_of_outcome, RepairOutcome: Filled Abandoned; ; Replaced Grown);

/// How many variants there are of each, so that none goes without a sample.
const VARIANTS: [(&str, usize); 11] = [
    ("command", 33),
    ("reply", 12),
    ("rejection", 18),
    ("change", 10),
    ("query", 14),
    ("answer", 11),
    ("outcome", 4),
    ("action", 9),
    ("control-reply", 7),
    ("control-query", 5),
    ("control-answer", 4),
];

struct Samples {
    lines: BTreeMap<String, Vec<u8>>,
}

impl Samples {
    fn add<T: PartialEq + Debug>(
        &mut self,
        kind: &str,
        name: &str,
        value: &T,
        encode: fn(&T) -> Result<Vec<u8>, CodecError>,
        decode: fn(&[u8]) -> Result<T, CodecError>,
    ) {
        let bytes = encode(value).unwrap();
        assert_eq!(&decode(&bytes).unwrap(), value);
        // No cut of it is taken for a value, nor is anything behind it.
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_err(), "{name} cut at {cut}");
        }
        assert!(matches!(decode(&[&bytes[..], &[0]].concat()), Err(CodecError::Trailing { extra: 1, .. })));
        let old = self.lines.insert(format!("{kind} {name}"), bytes);
        assert!(old.is_none(), "{kind} {name} twice");
    }

    fn command(&mut self, name: &str, command: Command) {
        let request = Request { session: SessionId(300), request: RequestId(70_000), command };
        let outcome = match &request.command {
            Command::FinishRepair(f) => Some(name_of_outcome(&f.outcome)),
            _ => None,
        };
        let full = match &request.command {
            Command::Control(c) => format!("Control/{}{name}", name_of_action(&c.action)),
            c => format!("{}{name}", name_of_command(c)),
        };
        self.add("command", &full, &request, encode_request, decode_request);
        if let Command::Control(c) = &request.command {
            let bytes = self.lines[&format!("command {full}")].clone();
            self.lines.insert(format!("action {}{name}", name_of_action(&c.action)), bytes);
        }
        if let Some(o) = outcome {
            self.lines.insert(format!("outcome {o}"), self.lines[&format!("command {full}")].clone());
        }
    }
}

/// Key compaction, and a topic that asks for it: the bytes of a configuration without it are those of before.
fn compactions(s: &mut Samples) {
    let swap = CompactionStep::Swap { old: vec![LedgerId(1), LedgerId(2)], new: vec![LedgerId(300)] };
    for (name, step) in
        [("", swap), ("/discard", CompactionStep::Discard { ledgers: vec![LedgerId(4), LedgerId(5)] })]
    {
        s.command(name, Command::Compact(Compaction { partition: p(3), epoch: Epoch(7), step }));
    }
    let cleanup = Cleanup {
        policy: CleanupPolicy::CompactAndDelete,
        min_dirty_permille: Some(250),
        delete_horizon_ms: Some(60_000),
    };
    let config = TopicConfig { retention_bytes: Some(9), cleanup, ..TopicConfig::default() };
    s.command("/compacted", Command::CreateTopic { name: name("c"), partitions: 2, config });
}

fn commands(s: &mut Samples) {
    compactions(s);
    let partition = p(3);
    let close = CloseLedger {
        ledger: LedgerId(9),
        version: Version(2),
        last_entry: EntryId(40),
        length: 1 << 33,
        records: 300,
        fragments: vec![Fragment {
            first_entry: EntryId(0),
            ensemble: ids(&[1, 2]),
            under: vec![EntryRange { first: EntryId(1), last: EntryId(2) }],
        }],
        under: vec![EntryRange { first: EntryId(3), last: EntryId(4) }],
        limbo_counts: vec![(member(2), 1)],
    };
    let epoch = Epoch(7);
    let (ledger, version) = (LedgerId(9), Version(2));
    let spec = member_spec(1, MemberRole::Bookie, 6);
    let start = StartRepair { ledger, version, target: member(4), limbo_count: 1, worker: member(5) };
    let finish =
        |outcome| Command::FinishRepair(FinishRepair { ledger, version, target: member(4), outcome });
    let fragments = vec![EntryId(0), EntryId(9)];
    let config = TopicConfig {
        retention_ms: Some(-1),
        retention_bytes: Some(1),
        max_message_bytes: Some(2),
        roll_bytes: Some(3),
        roll_ms: Some(4),
        ..TopicConfig::default()
    };
    for (name, command) in [
        ("", Command::Init { cluster: CLUSTER }),
        ("", Command::BookieBoot(boot_spec(1, Some(5), 6))),
        ("/first", Command::BookieBoot(boot_spec(1, None, 6))),
        ("", Command::OpenSession(spec)),
        ("", Command::CloseSession),
        ("", Command::ExpireSession { session: SessionId(4), member: member(1) }),
        ("", Command::Tick { wall_ms: 1_700_000_000_000, jump: true }),
        (
            "",
            Command::ReportBookies(vec![BookieReport {
                bookie: member(1),
                session: SessionId(4),
                lanes: vec![at(1, 2, 3)],
                free_bytes: 1 << 40,
            }]),
        ),
        ("", Command::SetMemberState { member: member(1), state: BookieState::Draining, restarting: true }),
        ("", Command::CreateTopic { name: name("orders"), partitions: 12, config: config.clone() }),
        (
            "",
            Command::AlterTopic {
                topic: TopicId(3),
                version: Some(version),
                partitions: Some(24),
                config: Some(config),
            },
        ),
        ("", Command::DeleteTopic { topic: TopicId(3) }),
        (
            "",
            Command::Assign(vec![
                Assignment { partition, broker: Some(member(11)) },
                Assignment { partition, broker: None },
            ]),
        ),
        ("", Command::Acquire(vec![AcquireItem { partition, seen: epoch }])),
        ("", Command::Release(vec![Release { partition, epoch }])),
        (
            "",
            Command::CreateLedger(CreateLedger {
                partition,
                epoch,
                ensemble: ids(&[1, 2, 3]),
                ack_quorum: 2,
            }),
        ),
        ("", change(ledger, version, 50, &[4, 2, 3], &[(0, 1)])),
        ("", Command::StartRecovery { ledger, version }),
        ("", Command::StartRecoveries(vec![RecoveryStart { ledger, version }])),
        (
            "",
            Command::TakeOver(vec![TakeOver {
                partition,
                epoch,
                close: close.clone(),
                append: Some(link(LedgerId(10), 300)),
            }]),
        ),
        ("", Command::Roll(Roll { partition, epoch, close: close.clone(), append: link(LedgerId(10), 300) })),
        ("", Command::Close { close: close.clone(), epoch: Some(epoch) }),
        ("/auditor", Command::Close { close, epoch: None }),
        (
            "",
            Command::Append(Append { partition, epoch, prev: Some(ledger), append: link(LedgerId(10), 300) }),
        ),
        ("", Command::EndSession { session: SessionId(9), member: member(4), incarnation: Incarnation(77) }),
        ("", Command::AdvanceLogStart { partition, epoch, to: Offset(300) }),
        ("", Command::AllocateProducerIds { count: 1_000 }),
        ("", Command::RemoveLedger { ledger, version }),
        ("", Command::StartRepair(start)),
        ("/replaced", finish(RepairOutcome::Replaced { from: member(1), fragments: fragments.clone() })),
        ("/grown", finish(RepairOutcome::Grown { fragments })),
        ("/filled", finish(RepairOutcome::Filled)),
        ("/abandoned", finish(RepairOutcome::Abandoned)),
        ("", Command::MarkChecked { ledger, version }),
        (
            "",
            Command::ConfigureGroup {
                name: group_name("billing"),
                version: Some(version),
                config: group_config(),
            },
        ),
        ("", Command::RemoveGroup { name: group_name("billing"), version: Some(version) }),
    ] {
        s.command(name, command);
    }
    for (epoch, action) in actions() {
        s.command("", Command::Control(ControlCommand { epoch, action }));
    }
}

fn actions() -> Vec<(Option<u64>, ControlAction)> {
    let tombstone = TombstoneRef { topic: TopicId(3), version: Version(2), due: true };
    let wish = TopicWish {
        name: name("orders"),
        partitions: 12,
        config: TopicConfig { retention_ms: Some(5), ..TopicConfig::default() },
        claim: Some(claim(7)),
        adoption: Adoption::IfMatches,
    };
    let plain = TopicWish { claim: None, adoption: Adoption::Fail, ..wish.clone() };
    let take = TopicWish { adoption: Adoption::Take, ..wish.clone() };
    let uid = Some("uid-7".to_owned());
    vec![
        (None, ControlAction::AcquireOperatorEpoch { holder: "operator-0".into() }),
        (Some(300), ControlAction::ApplyTopics(vec![wish, plain, take])),
        (
            Some(300),
            ControlAction::TombstoneTopics(vec![
                TopicDeletion { name: name("orders"), uid, purge_after_ms: 259_200_000 },
                TopicDeletion { name: name("orders"), uid: None, purge_after_ms: 0 },
            ]),
        ),
        (Some(300), ControlAction::RestoreTopics(vec![tombstone])),
        (None, ControlAction::PurgeTopics(vec![tombstone])),
        (
            Some(300),
            ControlAction::ReleaseClaims(vec![ClaimRelease { name: name("orders"), uid: "uid-7".into() }]),
        ),
        (Some(300), ControlAction::AnnounceRestart { member: member(1), restarting: true }),
        (None, ControlAction::RaiseFeatureLevel { level: 3 }),
        (Some(300), ControlAction::CheckEpoch),
    ]
}

fn control_replies(topic: &TopicRecord) -> Vec<ControlReply> {
    let topic = topic.clone();
    let control = tombstone(&topic);
    let refused = || Rejection::Claimed { holder: Some(claim(8)), why: "why".into() };
    let applied =
        |done, before| TopicApplied { done, before, topic: topic.clone(), control: control.clone() };
    vec![
        ControlReply::Epoch(OperatorEpoch { epoch: 300, holder: "operator-0".into() }),
        ControlReply::Applied(vec![
            Ok(applied(TopicDone::Created, None)),
            Ok(applied(TopicDone::Changed, Some(topic.clone()))),
            Ok(applied(TopicDone::Unchanged, Some(topic.clone()))),
            Ok(applied(TopicDone::Undeleted, Some(topic.clone()))),
            Err(refused()),
        ]),
        ControlReply::Tombstoned(vec![
            Ok(TopicTombstoned::Tombstone { topic: topic.clone(), control: control.clone(), news: true }),
            Ok(TopicTombstoned::Absent),
            Ok(TopicTombstoned::NotHolder(Some(claim(8)))),
            Err(refused()),
        ]),
        ControlReply::Each(vec![Ok(()), Err(refused())]),
        ControlReply::Released(vec![true, false]),
        ControlReply::FeatureLevel(3),
        ControlReply::Done,
    ]
}

fn tombstone(topic: &TopicRecord) -> TopicControl {
    let tombstone =
        Tombstone { deleted_ms: 1_700_000_000_000, purge_at_ms: 1_700_259_200_000, former: Some(claim(7)) };
    TopicControl { topic: topic.id, version: Version(2), claim: None, tombstone: Some(tombstone) }
}

fn controls(s: &mut Samples, topic: &TopicRecord) {
    for reply in control_replies(topic) {
        let name = name_of_control_reply(&reply);
        let value = Ok(Reply::Control(reply));
        s.add("control-reply", name, &value, encode_result, decode_result);
    }
    let (_, action) = actions().remove(1);
    for query in [
        ControlQuery::Operator,
        ControlQuery::Topics { after: Some(TopicId(3)), limit: 10 },
        ControlQuery::TopicsNamed(vec![name("orders")]),
        ControlQuery::Try(Box::new(ControlCommand { epoch: Some(300), action })),
        ControlQuery::BookieStanding(member(1)),
    ] {
        let name = name_of_control_query(&query);
        s.add("control-query", name, &Query::Control(query), encode_query, decode_query);
    }
    let standing = BookieStanding {
        named: 1,
        under: 2,
        unchecked: 3,
        repairs: 4,
        in_recovery: 5,
        with_dead: 6,
        other_writable: 7,
        largest_copies: 8,
    };
    for answer in [
        ControlAnswer::Operator(OperatorEpoch { epoch: 300, holder: "operator-0".into() }),
        ControlAnswer::Topics(vec![(topic.clone(), Some(tombstone(topic))), (topic.clone(), None)]),
        ControlAnswer::Tried(Ok(ControlReply::Done)),
        ControlAnswer::BookieStanding(Some(standing)),
    ] {
        let name = name_of_control_answer(&answer);
        s.add("control-answer", name, &Answer::Control(answer), encode_answer, decode_answer);
    }
}

fn results(s: &mut Samples, c: &Cluster) {
    let (l, part) = (c.ledger(LedgerId(1)), c.partition(0));
    let topic = c.state.topic(TopicId(1)).unwrap().clone();
    let epoch = Rejection::EpochMismatch { current: Epoch(4) };
    for reply in [
        Reply::Done,
        Reply::Session {
            session: SessionId(4),
            cluster: CLUSTER,
            next_ledger: LedgerId(9),
            state: BookieState::Limbo,
        },
        Reply::BookieBoot { cluster: CLUSTER, limbo: true, was_lost: true },
        Reply::Topic(topic),
        Reply::Acquired(vec![Ok(part.clone()), Err(epoch.clone())]),
        Reply::Each(vec![Ok(()), Err(epoch)]),
        Reply::Ledger(l.clone()),
        Reply::Ledgers(vec![Ok(l), Err(Rejection::VersionMismatch { current: Version(4) })]),
        Reply::Partition(part),
        Reply::ProducerIds { first: 77, count: 10 },
        Reply::Group(GroupRecord {
            name: group_name("billing"),
            version: Version(3),
            config: group_config(),
        }),
        Reply::Control(ControlReply::Done),
    ] {
        s.add("reply", name_of_reply(&reply), &Ok(reply.clone()), encode_result, decode_result);
    }
    let text = || "why".to_owned();
    for r in [
        Rejection::SessionExpired,
        Rejection::OutcomeUnknown,
        Rejection::NotInitialised,
        Rejection::WrongCluster { have: CLUSTER, named: ClusterId(uuid::Uuid::from_u128(1)) },
        Rejection::NotFound { what: text() },
        Rejection::Exists { what: text() },
        Rejection::EpochMismatch { current: Epoch(4) },
        Rejection::VersionMismatch { current: Version(5) },
        Rejection::LedgerState { ledger: LedgerId(1), state: LedgerState::InRecovery },
        Rejection::OtherEnd { ledger: LedgerId(1) },
        Rejection::NotAvailable { why: text() },
        Rejection::BookieNotEligible { bookie: member(1), why: text() },
        Rejection::Conflict { why: text() },
        Rejection::Invalid { field: text(), why: text() },
        Rejection::StaleOperatorEpoch { current: 300, holder: text() },
        Rejection::Claimed { holder: Some(claim(7)), why: text() },
        Rejection::Tombstoned { why: text() },
        Rejection::FeatureLevel { needed: 3, level: 2 },
    ] {
        s.add("rejection", name_of_rejection(&r), &Err(r.clone()), encode_result, decode_result);
    }
}

fn reads_and_changes(s: &mut Samples, c: &Cluster) {
    let (l, part, m) = (LedgerId(1), c.partition(0), c.member(1).clone());
    let topic = c.state.topic(TopicId(1)).unwrap().clone();
    for change in [
        Change::TopicControl(tombstone(&topic)),
        Change::Topic(topic),
        Change::TopicRemoved(TopicId(3)),
        Change::Partition(part),
        Change::PartitionRemoved(p(3)),
        Change::Member(m),
        Change::MemberRemoved(member(1)),
        Change::Time(1_700_000_000_000),
        Change::Group(GroupRecord {
            name: group_name("billing"),
            version: Version(3),
            config: group_config(),
        }),
        Change::GroupRemoved(group_name("billing")),
    ] {
        let name = name_of_change(&change);
        let watched = Watched { revision: Revision(500), changes: vec![change] };
        s.add("change", name, &watched, encode_watched, decode_watched);
    }
    for query in [
        Query::Cluster,
        Query::Members,
        Query::TopicByName(name("t")),
        Query::Topic(TopicId(1)),
        Query::Topics { after: None, limit: 10 },
        Query::Partition(p(0)),
        Query::Ledger(l),
        Query::LedgersOf { bookie: member(1), after: Some(LedgerId(0)), limit: 10 },
        Query::Ledgers { after: None, limit: 10 },
        Query::View,
        Query::Group(group_name("billing")),
        Query::Groups { after: None, limit: 10 },
        Query::Control(ControlQuery::Operator),
        Query::Repairs { worker: Some(member(4)), after: None, limit: 10 },
    ] {
        s.add("query", name_of_query(&query), &query, encode_query, decode_query);
        let answer = c.state.query(&query);
        let name = match query {
            Query::TopicByName(_) | Query::LedgersOf { .. } | Query::Repairs { .. } => {
                format!("{}/{}", name_of_answer(&answer), name_of_query(&query))
            }
            _ => name_of_answer(&answer).to_owned(),
        };
        s.add("answer", &name, &answer, encode_answer, decode_answer);
    }
}

fn sample_cluster() -> Cluster {
    let (mut c, l) = Cluster::with_open_ledger();
    let (s, _) = c.owner(0);
    c.lead(Command::Tick { wall_ms: 1_700_000_000_000, jump: true });
    c.ok(s, change(l, Version(1), 10, &[4, 2, 3], &[(0, 1)]));
    let start =
        StartRepair { ledger: l, version: Version(2), target: member(4), limbo_count: 0, worker: member(2) };
    c.lead(Command::StartRepair(start));
    c.ok(s, Command::ConfigureGroup { name: group_name("billing"), version: None, config: group_config() });
    assert_eq!(c.member(1).incarnation, Incarnation(100));
    c
}

/// With everything that only version 2 of a snapshot has.
fn controlled_cluster() -> Cluster {
    let mut c = sample_cluster();
    c.lead(Command::Control(ControlCommand {
        epoch: None,
        action: ControlAction::RaiseFeatureLevel { level: 3 },
    }));
    let config = TopicConfig::default();
    let wish = |n: &str, uid| TopicWish {
        name: name(n),
        partitions: 1,
        config: config.clone(),
        claim: Some(claim(uid)),
        adoption: Adoption::Fail,
    };
    for action in [
        ControlAction::AcquireOperatorEpoch { holder: "operator-0".into() },
        ControlAction::ApplyTopics(vec![wish("kept", 1), wish("deleted", 2)]),
        ControlAction::TombstoneTopics(vec![TopicDeletion {
            name: name("deleted"),
            uid: Some(claim(2).uid),
            purge_after_ms: 1_000,
        }]),
    ] {
        c.lead(Command::Control(ControlCommand { epoch: None, action }));
    }
    c
}

#[test]
fn golden_bytes() {
    let c = sample_cluster();
    let mut s = Samples { lines: BTreeMap::new() };
    commands(&mut s);
    results(&mut s, &c);
    reads_and_changes(&mut s, &c);
    controls(&mut s, c.state.topic(TopicId(1)).unwrap());
    for (kind, count) in VARIANTS {
        let of_kind = s.lines.keys().filter_map(|k| k.strip_prefix(kind)?.strip_prefix(' '));
        let variants: std::collections::BTreeSet<_> = of_kind.map(|k| k.split('/').next().unwrap()).collect();
        assert_eq!(variants.len(), count, "{kind}: {variants:?}");
    }
    let snapshot = c.state.snapshot().encode().unwrap();
    s.lines.insert("snapshot".into(), snapshot);
    let controlled = controlled_cluster();
    s.lines.insert("snapshot/3".into(), controlled.state.snapshot().encode().unwrap());

    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/all/golden.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut golden: BTreeMap<String, Vec<u8>> = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, bytes)| (name.to_owned(), unhex(bytes)))
        .collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        for (name, bytes) in &s.lines {
            golden.entry(name.clone()).or_insert_with(|| bytes.clone());
        }
        let lines: String = golden.iter().map(|(n, b)| format!("{n} {}\n", hex(b))).collect();
        std::fs::write(&path, lines).unwrap();
    }
    for (name, bytes) in &s.lines {
        assert_eq!(golden.get(name).map(|b| hex(b)), Some(hex(bytes)), "{name}");
    }
    // What an older build wrote is read: version 1 of the snapshot has no groups.
    let old = golden.remove("snapshot/1").unwrap();
    let state = State::decode(&old).unwrap();
    assert_eq!((state.groups().count(), state.topics().count(), state.members().count()), (0, 1, 6));
    assert_eq!(golden.len(), s.lines.len(), "a sample is gone");
    let state = State::decode(&golden["snapshot"]).unwrap();
    assert_eq!(state.view(), c.state.view());
    let state = State::decode(&golden["snapshot/3"]).unwrap();
    assert_eq!(state.view(), controlled.state.view());
    assert!(state.topic_controls().eq(controlled.state.topic_controls()));
    assert_eq!(state.operator(), controlled.state.operator());
}

#[test]
fn other_versions_and_lengths_are_refused() {
    let bytes = encode_query(&Query::Cluster).unwrap();
    assert_eq!(bytes, [1, 0]);
    assert_eq!(decode_query(&[2, 0]), Err(CodecError::Version { what: "query", version: 2 }));
    assert_eq!(decode_query(&[]), Err(CodecError::Empty { what: "query" }));
    assert!(matches!(decode_query(&[1; 5 << 20]), Err(CodecError::TooLong { max: 0x40_0000, .. })));
    assert!(matches!(decode_query(&[1, 99]), Err(CodecError::Malformed { .. })));
    let name = "x".repeat(5 << 20);
    let command = Command::BookieBoot(BookieSpec { name, ..boot_spec(1, None, 1) });
    let request = Request { session: SessionId(0), request: RequestId(0), command };
    assert!(matches!(encode_request(&request), Err(CodecError::TooLong { .. })));
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..300)) {
        bytes[0] = 1;
        let _ = (decode_request(&bytes), decode_result(&bytes), decode_query(&bytes));
        let _ = (decode_answer(&bytes), decode_watched(&bytes), State::decode(&bytes));
    }
}
