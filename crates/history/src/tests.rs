//! A sound history passes; each planted fault is found at its place and nothing else is.

use super::*;

const PRODUCERS: u32 = 3;
const RECORDS: u32 = 20;
const PARTITIONS: u32 = 2;

fn id(producer: u32, sequence: u32) -> Id {
    Id { producer, sequence }
}

fn digest(id: Id) -> u64 {
    u64::from(id.producer) << 32 | u64::from(id.sequence)
}

/// Producers take turns; each record is acknowledged before the next one is sent.
fn sound() -> History {
    let mut history = History { sent: vec![Vec::new(); PRODUCERS as usize], ..History::default() };
    for n in 0..PRODUCERS * RECORDS {
        let (producer, sequence) = (n % PRODUCERS, n / PRODUCERS);
        let partition = (sequence + producer) % PARTITIONS;
        let view = history.last.entry(partition).or_default();
        let (offset, ns) = (view.end, u64::from(n) * 10);
        let of = id(producer, sequence);
        view.seen.push(Seen { offset, body: Body::Intact(of), digest: digest(of) });
        view.end += 1;
        let outcome = Outcome::Acked { partition, offset: Some(offset), at_ns: ns + 5 };
        history.sent[producer as usize].push(Sent { partition, sent_ns: ns, outcome });
    }
    history.live = history.last.clone();
    history
}

fn faults(history: &History) -> Vec<(u32, Option<i64>, Fault)> {
    check(history).violations.into_iter().map(|v| (v.partition, v.offset, v.fault)).collect()
}

/// Does it to both reads.
fn both(history: &mut History, partition: u32, with: impl Fn(&mut View)) {
    with(history.live.get_mut(&partition).unwrap());
    with(history.last.get_mut(&partition).unwrap());
}

/// The record at this place.
fn at(history: &History, partition: u32, offset: usize) -> Id {
    match history.last[&partition].seen[offset].body {
        Body::Intact(id) => id,
        _ => unreachable!(),
    }
}

fn outcome(history: &mut History, id: Id) -> &mut Outcome {
    &mut history.sent[id.producer as usize][id.sequence as usize].outcome
}

#[test]
fn a_sound_history_passes() {
    let report = check(&sound());
    assert_eq!(report.violations, []);
    assert_eq!((report.sent, report.acked, report.read_live, report.read_last), (60, 60, 60, 60));
}

#[test]
fn a_lost_record() {
    let mut h = sound();
    let of = at(&h, 1, 7);
    both(&mut h, 1, |v| _ = v.seen.remove(7));
    assert_eq!(faults(&h), [(1, Some(7), Fault::Lost(of))]);
}

#[test]
fn a_lost_end_of_a_partition() {
    let mut h = sound();
    both(&mut h, 0, |v| {
        v.seen.truncate(28);
        v.end = 28;
    });
    let found = faults(&h);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|f| f.0 == 0 && f.1 >= Some(28) && matches!(f.2, Fault::Lost(_))));
}

#[test]
fn a_partition_that_is_gone() {
    let mut h = sound();
    h.last.remove(&1);
    let names: Vec<_> = check(&h).violations.iter().map(|v| (v.partition, v.fault.name())).collect();
    assert_eq!(names.iter().filter(|n| **n == (1, "lost")).count(), 30);
    assert_eq!(names.iter().filter(|n| **n == (1, "skipped")).count(), 30);
    assert_eq!(names.len(), 60);
}

#[test]
fn a_duplicate() {
    let mut h = sound();
    let of = at(&h, 0, 29);
    both(&mut h, 0, |v| {
        v.seen.push(Seen { offset: 30, body: Body::Intact(of), digest: digest(of) });
        v.end = 31;
    });
    let fault = Fault::Duplicate { id: of, first_partition: 0, first_offset: 29 };
    assert_eq!(faults(&h), [(0, Some(30), fault)]);
}

#[test]
fn a_duplicate_of_an_unknown_outcome_that_is_far_away() {
    let mut h = sound();
    let of = at(&h, 0, 3);
    *outcome(&mut h, of) = Outcome::Unknown;
    assert_eq!(check(&h).unknown_present, 1);
    assert_eq!(faults(&h), []);
    both(&mut h, 0, |v| {
        v.seen.push(Seen { offset: 30, body: Body::Intact(of), digest: digest(of) });
        v.end = 31;
    });
    let names: Vec<_> = check(&h).violations.iter().map(|v| (v.offset, v.fault.name())).collect();
    assert_eq!(names, [(Some(30), "reordered"), (Some(30), "duplicate")]);
}

#[test]
fn an_unknown_outcome_may_be_absent() {
    let mut h = sound();
    let of = at(&h, 1, 7);
    *outcome(&mut h, of) = Outcome::Unknown;
    both(&mut h, 1, |v| _ = v.seen.remove(7));
    let report = check(&h);
    assert_eq!((report.violations.len(), report.unknown, report.unknown_present), (0, 1, 0));
}

#[test]
fn a_record_that_was_reported_as_not_written() {
    let mut h = sound();
    let of = at(&h, 1, 7);
    *outcome(&mut h, of) = Outcome::NotWritten;
    assert_eq!(faults(&h), [(1, Some(7), Fault::Unwritten(of))]);
}

#[test]
fn two_records_of_a_producer_in_the_wrong_order() {
    let mut h = sound();
    // Two successive records of one producer in partition 0, and their acknowledgements, change places.
    let mine: Vec<usize> = (0..30).filter(|i| at(&h, 0, *i).producer == 2).collect();
    let (i, j) = (mine[3], mine[4]);
    let (first, second) = (at(&h, 0, i), at(&h, 0, j));
    both(&mut h, 0, |v| {
        let (a, b) = (v.seen[i], v.seen[j]);
        v.seen[i] = Seen { offset: a.offset, ..b };
        v.seen[j] = Seen { offset: b.offset, ..a };
    });
    for (of, to) in [(first, j), (second, i)] {
        if let Outcome::Acked { offset, .. } = outcome(&mut h, of) {
            *offset = Some(to as i64);
        }
    }
    // All were acknowledged late enough for the rule of real time.
    for sent in h.sent.iter_mut().flatten() {
        if let Outcome::Acked { at_ns, .. } = &mut sent.outcome {
            *at_ns += 10_000;
        }
    }
    let fault = Fault::Reordered { id: first, behind: second, behind_offset: i as i64 };
    assert_eq!(faults(&h), [(0, Some(j as i64), fault)]);
}

#[test]
fn a_record_behind_one_that_was_sent_later() {
    let mut h = sound();
    let (i, j) = (10, 11);
    let (first, second) = (at(&h, 0, i), at(&h, 0, j));
    assert_ne!(first.producer, second.producer);
    both(&mut h, 0, |v| {
        let (a, b) = (v.seen[i], v.seen[j]);
        v.seen[i] = Seen { offset: a.offset, ..b };
        v.seen[j] = Seen { offset: b.offset, ..a };
    });
    for (of, to) in [(first, j), (second, i)] {
        if let Outcome::Acked { offset, .. } = outcome(&mut h, of) {
            *offset = Some(to as i64);
        }
    }
    let fault = Fault::Inverted { id: first, behind: second, behind_offset: i as i64 };
    assert_eq!(faults(&h), [(0, Some(j as i64), fault)]);
}

#[test]
fn an_acknowledgement_with_another_offset() {
    let mut h = sound();
    let of = at(&h, 1, 7);
    if let Outcome::Acked { offset, .. } = outcome(&mut h, of) {
        *offset = Some(8);
    }
    assert_eq!(faults(&h), [(1, Some(7), Fault::Elsewhere { id: of, partition: 1, offset: Some(8) })]);
    if let Outcome::Acked { offset, .. } = outcome(&mut h, of) {
        *offset = None;
    }
    assert_eq!(faults(&h), []);
}

#[test]
fn a_record_in_another_partition() {
    let mut h = sound();
    let of = at(&h, 1, 29);
    let last = h.last[&1].seen[29];
    both(&mut h, 1, |v| _ = v.seen.pop());
    both(&mut h, 0, |v| {
        v.seen.push(Seen { offset: 30, ..last });
        v.end = 31;
    });
    let names: Vec<_> =
        check(&h).violations.iter().map(|v| (v.partition, v.offset, v.fault.name())).collect();
    assert_eq!(names, [(0, Some(30), "elsewhere"), (0, Some(30), "elsewhere")]);
    assert!(
        matches!(check(&h).violations[0].fault, Fault::Elsewhere { id, partition: 1, offset: None } if id == of)
    );
}

#[test]
fn phantoms() {
    let mut h = sound();
    both(&mut h, 0, |v| {
        v.seen.push(Seen { offset: 30, body: Body::Foreign, digest: 1 });
        v.seen.push(Seen { offset: 31, body: Body::Intact(id(9, 0)), digest: 2 });
        v.seen.push(Seen { offset: 32, body: Body::Intact(id(0, RECORDS)), digest: 3 });
        v.end = 33;
    });
    let want = [
        (0, Some(30), Fault::Phantom(None)),
        (0, Some(31), Fault::Phantom(Some(id(9, 0)))),
        (0, Some(32), Fault::Phantom(Some(id(0, RECORDS)))),
    ];
    assert_eq!(faults(&h), want);
}

#[test]
fn damaged_bytes_are_also_a_loss() {
    let mut h = sound();
    let of = at(&h, 0, 5);
    both(&mut h, 0, |v| v.seen[5].body = Body::Damaged(of));
    assert_eq!(faults(&h), [(0, Some(5), Fault::Damaged(of)), (0, Some(5), Fault::Lost(of))]);
}

#[test]
fn reads_that_differ() {
    let mut h = sound();
    h.live.get_mut(&0).unwrap().seen[5].digest += 1;
    assert_eq!(faults(&h), [(0, Some(5), Fault::Differs)]);
}

#[test]
fn a_reader_that_passed_over_a_record() {
    let mut h = sound();
    h.live.get_mut(&0).unwrap().seen.remove(5);
    assert_eq!(faults(&h), [(0, Some(5), Fault::Skipped { by_live: true })]);
    // One that has not come so far passed over nothing.
    let mut h = sound();
    let live = h.live.get_mut(&0).unwrap();
    live.seen.truncate(5);
    live.end = 5;
    assert_eq!(faults(&h), []);
}

#[test]
fn a_record_that_was_read_and_vanished() {
    let mut h = sound();
    let of = at(&h, 0, 5);
    h.last.get_mut(&0).unwrap().seen.remove(5);
    let want = [(0, Some(5), Fault::Skipped { by_live: false }), (0, Some(5), Fault::Lost(of))];
    assert_eq!(faults(&h), want);
}

#[test]
fn a_reader_that_gives_a_record_again() {
    let mut h = sound();
    let live = h.live.get_mut(&1).unwrap();
    live.seen.insert(8, live.seen[6]);
    assert_eq!(faults(&h), [(1, Some(6), Fault::Unordered { behind: 7, live: true })]);
}

#[test]
fn a_gap_of_the_systems_own_account() {
    let mut h = sound();
    h.last.get_mut(&1).unwrap().gaps.push((3, 5));
    assert_eq!(faults(&h), [(1, Some(3), Fault::Gap { to: 5 })]);
}

#[test]
fn a_read_that_came_no_further_claims_no_loss() {
    let mut h = sound();
    let last = h.last.get_mut(&1).unwrap();
    last.seen.truncate(10);
    (last.end, last.stuck) = (10, Some(30));
    assert_eq!(faults(&h), [(1, Some(10), Fault::Stuck { to: 30, live: false })]);
    // Before it, it does.
    h.last.get_mut(&1).unwrap().seen.remove(4);
    let names: Vec<_> = check(&h).violations.iter().map(|v| (v.offset, v.fault.name())).collect();
    assert_eq!(names, [(Some(10), "stuck"), (Some(4), "skipped"), (Some(4), "lost")]);
}

#[test]
fn everything_at_once_names_every_place() {
    let mut h = sound();
    both(&mut h, 0, |v| _ = v.seen.remove(4));
    both(&mut h, 1, |v| v.seen[9].body = Body::Foreign);
    h.live.get_mut(&1).unwrap().seen[2].digest = 0;
    let found = faults(&h);
    for (partition, offset, name) in [(0, 4, "lost"), (1, 9, "phantom"), (1, 9, "lost"), (1, 2, "differs")] {
        assert!(
            found.iter().any(|f| f.0 == partition && f.1 == Some(offset) && f.2.name() == name),
            "{name} at {partition}@{offset}"
        );
    }
    assert_eq!(found.len(), 4);
}
