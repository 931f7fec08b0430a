//! `Control`: wishes, claims, tombstones, the operator epoch, the feature level.

use tidemill_types::meta::*;
use tidemill_types::{
    BookieState, Replication, SessionId, TopicConfig, TopicControl, TopicId, TopicRecord, Version,
};

use crate::harness::*;

fn wish(n: &str, partitions: u32, uid: Option<u32>, adoption: Adoption) -> TopicWish {
    TopicWish { name: name(n), partitions, config: TopicConfig::default(), claim: uid.map(claim), adoption }
}

fn apply(c: &mut Cluster, w: TopicWish) -> Result<TopicApplied, Rejection> {
    match c.control(ControlAction::ApplyTopics(vec![w])) {
        ControlReply::Applied(mut v) => v.remove(0),
        other => panic!("{other:?}"),
    }
}

fn done(c: &mut Cluster, w: TopicWish) -> TopicDone {
    apply(c, w).unwrap().done
}

fn delete(c: &mut Cluster, n: &str, uid: Option<u32>, after: i64) -> Result<TopicTombstoned, Rejection> {
    let uid = uid.map(|u| claim(u).uid);
    let d = TopicDeletion { name: name(n), uid, purge_after_ms: after };
    match c.control(ControlAction::TombstoneTopics(vec![d])) {
        ControlReply::Tombstoned(mut v) => v.remove(0),
        other => panic!("{other:?}"),
    }
}

fn each(reply: ControlReply) -> Result<(), Rejection> {
    match reply {
        ControlReply::Each(mut v) => v.remove(0),
        other => panic!("{other:?}"),
    }
}

fn found(c: &Cluster, n: &str) -> Option<(TopicRecord, Option<TopicControl>)> {
    match c.state.query(&Query::Control(ControlQuery::TopicsNamed(vec![name(n)]))) {
        Answer::Control(ControlAnswer::Topics(mut v)) => v.pop(),
        other => panic!("{other:?}"),
    }
}

fn reference(c: &Cluster, n: &str, due: bool) -> TombstoneRef {
    let control = found(c, n).unwrap().1.unwrap();
    TombstoneRef { topic: control.topic, version: control.version, due }
}

#[track_caller]
fn assert_claimed(r: Result<TopicApplied, Rejection>, holder: Option<u32>) {
    match r {
        Err(Rejection::Claimed { holder: h, .. }) => assert_eq!(h, holder.map(claim)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_of_it_below_its_feature_level() {
    let mut c = Cluster::new();
    let s = c.session(11);
    let control = |action| Command::Control(ControlCommand { epoch: None, action });
    let refused = c.no(s, control(ControlAction::CheckEpoch));
    assert_eq!(refused, Rejection::FeatureLevel { needed: 3, level: 2 });
    let raise = |level| control(ControlAction::RaiseFeatureLevel { level });
    assert_invalid(&c.no(SessionId::NONE, raise(tidemill_metadata::FEATURE_LEVEL + 1)), "level");
    assert_eq!(c.control(ControlAction::RaiseFeatureLevel { level: 3 }), ControlReply::FeatureLevel(3));
    assert_conflict(&c.no(SessionId::NONE, raise(2)), "never goes down");
    c.ok(s, control(ControlAction::CheckEpoch));
    // A member that does not know a level stops at the log entry, before its state differs from the others'.
    let request = |level| Request {
        session: SessionId::NONE,
        request: tidemill_types::RequestId(0),
        command: raise(level),
    };
    assert_eq!(tidemill_metadata::unknown_level(&request(3)), None);
    assert_eq!(tidemill_metadata::unknown_level(&request(99)), Some(99));
}

#[test]
fn a_wish_creates_changes_and_then_does_nothing() {
    let mut c = Cluster::controlled();
    let w = wish("u", 2, Some(1), Adoption::Fail);
    let first = apply(&mut c, w.clone()).unwrap();
    assert_eq!((first.done, first.before, first.topic.partitions), (TopicDone::Created, None, 2));
    assert_eq!(first.control.claim, Some(claim(1)));
    let before = c.state.snapshot().encode().unwrap();
    let again = apply(&mut c, w.clone()).unwrap();
    assert_eq!((again.done, again.topic.version), (TopicDone::Unchanged, Version(1)));
    assert_eq!(c.state.topics().count(), 2);
    // Rule 3: nothing but the log position moved.
    let after = c.state.snapshot().encode().unwrap();
    assert_eq!(before.len(), after.len());
    let grown = TopicWish { partitions: 5, ..w.clone() };
    let grown = apply(&mut c, grown).unwrap();
    assert_eq!((grown.done, grown.before.unwrap().partitions), (TopicDone::Changed, 2));
    assert_eq!(c.state.partitions().filter(|p| p.id.topic == grown.topic.id).count(), 5);
    let config = TopicConfig { retention_bytes: Some(9), ..TopicConfig::default() };
    let other = TopicWish { partitions: 5, config, ..w.clone() };
    assert_eq!(done(&mut c, other), TopicDone::Changed);
    assert_invalid(&apply(&mut c, w).unwrap_err(), "partitions");
}

#[test]
fn wishes_that_are_refused_say_which_field() {
    let mut c = Cluster::controlled();
    let w = || wish("u", 1, Some(1), Adoption::Fail);
    let long = |n| "x".repeat(n);
    let uid = |uid: String| Some(tidemill_types::Claim { uid, owner: "o".into() });
    let owner = |owner: String| Some(tidemill_types::Claim { uid: "u".into(), owner });
    let replication = Replication { copies: 1, ack_quorum: 2 };
    for (field, w) in [
        ("name", TopicWish { name: name("__u"), ..w() }),
        ("partitions", TopicWish { partitions: 0, ..w() }),
        ("partitions", TopicWish { partitions: 100_001, ..w() }),
        ("replication", TopicWish { config: TopicConfig { replication, ..TopicConfig::default() }, ..w() }),
        ("claim.uid", TopicWish { claim: uid(String::new()), ..w() }),
        ("claim.uid", TopicWish { claim: uid(long(129)), ..w() }),
        ("claim.owner", TopicWish { claim: owner(String::new()), ..w() }),
        ("claim.owner", TopicWish { claim: owner(long(513)), ..w() }),
    ] {
        assert_invalid(&apply(&mut c, w).unwrap_err(), field);
    }
    let many = vec![w(); MAX_BATCH + 1];
    let action = ControlAction::ApplyTopics(many);
    let refused = c.no(SessionId::NONE, Command::Control(ControlCommand { epoch: None, action }));
    assert_invalid(&refused, "elements");
}

#[test]
fn one_command_makes_a_bounded_number_of_partitions() {
    let mut c = Cluster::controlled();
    let wishes = vec![
        wish("a", 60_000, None, Adoption::Fail),
        wish("b", 60_000, None, Adoption::Fail),
        wish("c", 40_000, None, Adoption::Fail),
    ];
    let ControlReply::Applied(results) = c.control(ControlAction::ApplyTopics(wishes)) else { panic!() };
    assert!(results[0].is_ok() && results[2].is_ok());
    assert_conflict(results[1].as_ref().unwrap_err(), "100000 new partitions");
}

#[test]
fn a_claim_has_one_holder_and_the_loser_is_told_who() {
    let mut c = Cluster::controlled();
    assert_eq!(done(&mut c, wish("u", 1, Some(1), Adoption::Fail)), TopicDone::Created);
    for adoption in [Adoption::Fail, Adoption::IfMatches, Adoption::Take] {
        assert_claimed(apply(&mut c, wish("u", 1, Some(2), adoption)), Some(1));
        assert_claimed(apply(&mut c, wish("u", 1, None, adoption)), Some(1));
    }
    // The loser's deletion leaves the winner's topic alone; so does a release with another uid.
    assert_eq!(delete(&mut c, "u", Some(2), 0).unwrap(), TopicTombstoned::NotHolder(Some(claim(1))));
    assert_eq!(delete(&mut c, "u", None, 0).unwrap(), TopicTombstoned::NotHolder(Some(claim(1))));
    let release =
        |uid| ControlAction::ReleaseClaims(vec![ClaimRelease { name: name("u"), uid: claim(uid).uid }]);
    assert_eq!(c.control(release(2)), ControlReply::Released(vec![false]));
    let topic = found(&c, "u").unwrap().0;
    assert_eq!(c.control(release(1)), ControlReply::Released(vec![true]));
    assert_eq!(found(&c, "u").unwrap().0, topic, "freeing a claim touches no data");
    assert_eq!(c.control(release(1)), ControlReply::Released(vec![false]));
    // Free: the other one takes over, when it may adopt.
    assert_claimed(apply(&mut c, wish("u", 1, Some(2), Adoption::Fail)), None);
    assert_eq!(done(&mut c, wish("u", 1, Some(2), Adoption::IfMatches)), TopicDone::Changed);
    assert_claimed(apply(&mut c, wish("u", 1, Some(1), Adoption::Take)), Some(2));
}

#[test]
fn adoption_of_a_topic_that_nobody_claims() {
    let mut c = Cluster::controlled();
    // `t` was made by hand, with two partitions.
    assert_claimed(apply(&mut c, wish("t", 2, Some(1), Adoption::Fail)), None);
    let differs = apply(&mut c, wish("t", 3, Some(1), Adoption::IfMatches));
    let Err(Rejection::Claimed { why, .. }) = &differs else { panic!("{differs:?}") };
    assert!(why.contains("2 partitions, 3 wished"), "{why}");
    assert_eq!(done(&mut c, wish("t", 3, None, Adoption::Fail)), TopicDone::Changed, "without a claim");
    assert_eq!(done(&mut c, wish("t", 3, Some(1), Adoption::IfMatches)), TopicDone::Changed);
    assert_eq!(done(&mut c, wish("t", 4, Some(1), Adoption::Fail)), TopicDone::Changed, "it is its own now");
    let s = c.session(11);
    let refused = c.no(s, Command::DeleteTopic { topic: TopicId(1) });
    assert!(matches!(refused, Rejection::Claimed { holder: Some(h), .. } if h == claim(1)));
}

#[test]
fn a_tombstone_keeps_everything_until_it_is_undeleted_or_purged() {
    let mut c = Cluster::controlled();
    assert_eq!(done(&mut c, wish("t", 2, Some(1), Adoption::Take)), TopicDone::Changed);
    c.acquire(11, 0);
    let l = c.create(0);
    let made = delete(&mut c, "t", Some(1), 500).unwrap();
    let TopicTombstoned::Tombstone { control, news: true, .. } = made else { panic!("{made:?}") };
    let t = control.tombstone.unwrap();
    assert_eq!((t.deleted_ms, t.purge_at_ms, t.former), (1_000_000, 1_000_500, Some(claim(1))));
    assert_eq!(control.claim, None, "the claim is free");
    // Again: done, and its time stays.
    c.lead(Command::Tick { wall_ms: 1_000_100, jump: false });
    let again = delete(&mut c, "t", Some(1), 9_000).unwrap();
    assert!(matches!(again, TopicTombstoned::Tombstone { news: false, control, .. }
        if control.tombstone.as_ref().unwrap().purge_at_ms == 1_000_500));
    assert_eq!(delete(&mut c, "t", Some(2), 0).unwrap(), TopicTombstoned::NotHolder(None));
    assert_eq!(delete(&mut c, "nothing", Some(2), 0).unwrap(), TopicTombstoned::Absent);
    assert!(c.state.ledger(l).is_some());
    // Its name is taken.
    let s = c.session(11);
    let create = Command::CreateTopic { name: name("t"), partitions: 1, config: TopicConfig::default() };
    assert!(matches!(c.no(s, create), Rejection::Tombstoned { .. }));
    let alter = Command::AlterTopic { topic: TopicId(1), version: None, partitions: Some(3), config: None };
    assert!(matches!(c.no(s, alter), Rejection::Tombstoned { .. }));
    // Another owner does not get it by applying, the same owner does, under a new uid.
    let stranger = apply(&mut c, wish("t", 2, Some(2), Adoption::Fail));
    assert!(matches!(stranger, Err(Rejection::Tombstoned { .. })), "{stranger:?}");
    let mut same = wish("t", 2, Some(1), Adoption::Fail);
    same.claim.as_mut().unwrap().uid = "uid-after-the-revert".into();
    let back = apply(&mut c, same).unwrap();
    assert_eq!((back.done, back.control.tombstone), (TopicDone::Undeleted, None));
    assert!(c.state.ledger(l).is_some());
    assert_eq!(back.topic.id, TopicId(1));
}

#[test]
fn a_purge_names_its_tombstone_and_waits_for_its_time() {
    let mut c = Cluster::controlled();
    done(&mut c, wish("u", 3, Some(1), Adoption::Fail));
    delete(&mut c, "u", Some(1), 500).unwrap();
    let early = reference(&c, "u", true);
    let purge = |r| ControlAction::PurgeTopics(vec![r]);
    assert_conflict(&each(c.control(purge(early))).unwrap_err(), "its time comes at 1000500");
    // Undeleted and deleted again: the old reference is of another tombstone.
    done(&mut c, wish("u", 3, Some(1), Adoption::Fail));
    assert!(each(c.control(purge(early))).is_err());
    delete(&mut c, "u", Some(1), 500).unwrap();
    c.lead(Command::Tick { wall_ms: 1_000_500, jump: false });
    assert!(matches!(each(c.control(purge(early))), Err(Rejection::VersionMismatch { .. })));
    let due = reference(&c, "u", true);
    each(c.control(purge(due))).unwrap();
    assert!(found(&c, "u").is_none());
    assert!(matches!(each(c.control(purge(due))), Err(Rejection::NotFound { .. })));
    // Now: without its time, by wish.
    done(&mut c, wish("u", 3, Some(1), Adoption::Fail));
    delete(&mut c, "u", Some(1), 1 << 36).unwrap();
    let now = reference(&c, "u", false);
    each(c.control(purge(now))).unwrap();
    assert_eq!(c.state.topic_controls().count(), 0);
    assert_eq!(c.state.topics().count(), 1);
}

#[test]
fn a_restored_tombstone_is_what_it_was() {
    let mut c = Cluster::controlled();
    done(&mut c, wish("u", 1, Some(1), Adoption::Fail));
    delete(&mut c, "u", Some(1), 500).unwrap();
    let r = reference(&c, "u", false);
    each(c.control(ControlAction::RestoreTopics(vec![r]))).unwrap();
    assert_eq!(found(&c, "u").unwrap().1.unwrap().claim, Some(claim(1)));
    assert!(each(c.control(ControlAction::RestoreTopics(vec![r]))).is_err());
}

#[test]
fn deletions_that_are_refused() {
    let mut c = Cluster::new();
    c.control(ControlAction::RaiseFeatureLevel { level: 3 });
    assert_conflict(&delete(&mut c, "t", None, 5).unwrap_err(), "quorum time");
    c.lead(Command::Tick { wall_ms: 5, jump: true });
    for after in [-1, i64::MAX] {
        assert_invalid(&delete(&mut c, "t", None, after).unwrap_err(), "purge_after_ms");
    }
    let made = delete(&mut c, "t", None, 5).unwrap();
    assert!(matches!(made, TopicTombstoned::Tombstone { news: true, .. }), "nobody's: {made:?}");
    // Nobody's tombstone is anybody's.
    assert_eq!(done(&mut c, wish("t", 2, Some(9), Adoption::Fail)), TopicDone::Undeleted);
}

#[test]
fn an_operator_that_lost_its_lead_can_do_nothing() {
    let mut c = Cluster::controlled();
    let s = c.session(11);
    let acquire = |holder: &str| ControlAction::AcquireOperatorEpoch { holder: holder.into() };
    assert!(matches!(c.control(acquire("a")), ControlReply::Epoch(e) if e.epoch == 1 && e.holder == "a"));
    let with = |epoch, action| Command::Control(ControlCommand { epoch: Some(epoch), action });
    let create = || ControlAction::ApplyTopics(vec![wish("u", 1, Some(1), Adoption::Fail)]);
    c.ok(s, with(1, create()));
    assert!(matches!(c.control(acquire("b")), ControlReply::Epoch(e) if e.epoch == 2));
    for stale in [0, 1, 3] {
        for action in [
            create(),
            ControlAction::TombstoneTopics(Vec::new()),
            ControlAction::PurgeTopics(Vec::new()),
            ControlAction::ReleaseClaims(Vec::new()),
            ControlAction::AnnounceRestart { member: member(1), restarting: true },
            ControlAction::CheckEpoch,
            acquire("a"),
        ] {
            let refused = c.no(s, with(stale, action));
            assert_eq!(refused, Rejection::StaleOperatorEpoch { current: 2, holder: "b".into() });
        }
    }
    c.ok(s, with(2, create()));
    for holder in [String::new(), "x".repeat(254)] {
        let refused = c.no(s, with(2, ControlAction::AcquireOperatorEpoch { holder }));
        assert_invalid(&refused, "holder");
    }
}

#[test]
fn a_restart_is_announced_without_naming_a_state() {
    let mut c = Cluster::controlled();
    let announce = |n, restarting| ControlAction::AnnounceRestart { member: member(n), restarting };
    c.set_state(1, BookieState::Draining).unwrap();
    c.control(announce(1, true));
    assert_eq!((c.member(1).restarting, c.member(1).state), (true, BookieState::Draining));
    c.control(announce(1, false));
    assert!(!c.member(1).restarting);
    let send = |action| Command::Control(ControlCommand { epoch: None, action });
    assert_conflict(&c.no(SessionId::NONE, send(announce(11, true))), "only bookies");
    assert!(matches!(c.no(SessionId::NONE, send(announce(77, true))), Rejection::NotFound { .. }));
}

#[test]
fn a_trial_tells_what_would_happen_and_changes_nothing() {
    let c = Cluster::controlled();
    let before = c.state.snapshot().encode().unwrap();
    let attempt = |action| {
        let command = Box::new(ControlCommand { epoch: None, action });
        match c.state.query(&Query::Control(ControlQuery::Try(command))) {
            Answer::Control(ControlAnswer::Tried(r)) => r,
            other => panic!("{other:?}"),
        }
    };
    let wishes = vec![wish("u", 1, Some(1), Adoption::Fail), wish("t", 1, Some(1), Adoption::Take)];
    let Ok(ControlReply::Applied(results)) = attempt(ControlAction::ApplyTopics(wishes)) else { panic!() };
    assert_eq!(results[0].as_ref().unwrap().done, TopicDone::Created);
    assert_invalid(results[1].as_ref().unwrap_err(), "partitions");
    let d = TopicDeletion { name: name("t"), uid: None, purge_after_ms: 1 };
    assert!(attempt(ControlAction::TombstoneTopics(vec![d])).is_ok());
    assert_invalid(&attempt(ControlAction::CheckEpoch).unwrap_err(), "dry_run");
    assert_eq!(c.state.snapshot().encode().unwrap(), before);
}

#[test]
fn what_stands_against_stopping_a_bookie() {
    let (mut c, l) = Cluster::with_open_ledger();
    let standing =
        |c: &Cluster, n| match c.state.query(&Query::Control(ControlQuery::BookieStanding(member(n)))) {
            Answer::Control(ControlAnswer::BookieStanding(s)) => s,
            other => panic!("{other:?}"),
        };
    assert_eq!(standing(&c, 11), None, "a broker");
    let s = standing(&c, 1).unwrap();
    assert_eq!((s.named, s.with_dead, s.other_writable, s.largest_copies), (1, 0, 3, 3));
    assert_eq!(standing(&c, 4).unwrap().named, 0);
    c.expire(2);
    assert_eq!(standing(&c, 1).unwrap().with_dead, 1);
    assert_eq!(standing(&c, 2).unwrap().with_dead, 0, "it itself does not count");
    c.recover(l);
    assert_eq!(standing(&c, 1).unwrap().in_recovery, 1);
}
