use super::*;

fn b(epoch: i16, first: i32, last: i32) -> Sequenced {
    Sequenced { id: 7, epoch, first, last }
}

const FAR: i64 = i64::MIN + 1;

fn judge(p: &Producers, s: &Sequenced, hwm: i64) -> Verdict {
    p.judge(s, Offset(hwm), FAR)
}

#[test]
fn a_pushed_batch_is_never_called_a_duplicate() {
    let mut p = Producers::default();
    assert_eq!(judge(&p, &b(0, 0, 4), 0), Verdict::Append);
    p.push(&b(0, 0, 4), Offset(100), 1, Offset(100));
    assert_eq!(
        judge(&p, &b(0, 0, 4), 100),
        Verdict::WaitFor { pushed: Offset(100), offset: Offset(100), append_time_ms: 1 }
    );
    assert_eq!(
        judge(&p, &b(0, 2, 4), 105),
        Verdict::Duplicate { offset: Offset(102), append_time_ms: 1, rebuilt: false }
    );
}

#[test]
fn gaps_epochs_and_strangers() {
    let mut p = Producers::default();
    assert_eq!(judge(&p, &b(0, 3, 3), 0), Verdict::UnknownProducer);
    p.push(&b(3, 0, 9), Offset(0), 1, Offset(0));
    assert_eq!(judge(&p, &b(3, 11, 12), 10), Verdict::OutOfOrder { expected: 10 });
    assert_eq!(judge(&p, &b(3, 5, 12), 10), Verdict::OutOfOrder { expected: 10 });
    assert_eq!(judge(&p, &b(2, 10, 10), 10), Verdict::Fenced { current: 3 });
    assert_eq!(judge(&p, &b(4, 10, 10), 10), Verdict::OutOfOrder { expected: 0 });
    assert_eq!(judge(&p, &b(4, 0, 0), 10), Verdict::Append);
}

#[test]
fn sequences_wrap() {
    let mut p = Producers::default();
    p.replay(&b(0, i32::MAX - 1, 1), Offset(50), 1);
    assert_eq!(judge(&p, &b(0, 2, 2), 60), Verdict::Append);
    assert_eq!(
        judge(&p, &b(0, 0, 1), 60),
        Verdict::Duplicate { offset: Offset(52), append_time_ms: 1, rebuilt: true }
    );
    assert_eq!(judge(&p, &b(0, i32::MAX - 9, i32::MAX - 5), 60), Verdict::OldDuplicate);
}

#[test]
fn five_batches_are_remembered_and_older_ones_known_as_old() {
    let mut p = Producers::default();
    for i in 0..8 {
        p.push(&b(0, i, i), Offset(i.into()), 1, Offset(i.into()));
    }
    assert_eq!(judge(&p, &b(0, 1, 1), 8), Verdict::OldDuplicate);
    assert!(matches!(judge(&p, &b(0, 3, 3), 8), Verdict::Duplicate { .. }));
}

#[test]
fn expiry_is_by_append_time_and_gives_its_own_verdict() {
    let mut p = Producers::default();
    p.push(&b(0, 0, 0), Offset(0), 1_000, Offset(0));
    assert_eq!(p.judge(&b(0, 1, 1), Offset(1), 999), Verdict::Append);
    assert_eq!(p.judge(&b(0, 1, 1), Offset(1), 1_000), Verdict::UnknownProducer);
    p.expire(999);
    assert_eq!(p.len(), 1);
    p.expire(1_000);
    assert!(p.is_empty());
}

#[test]
fn a_snapshot_leaves_out_what_stands_behind_its_place() {
    let mut p = Producers::default();
    p.push(&b(0, 0, 0), Offset(0), 1, Offset(0));
    p.push(&b(1, 0, 0), Offset(1), 1, Offset(0));
    let mut r = SnapshotReader::default();
    assert_eq!(r.add(&p.snapshot(Offset(1))[0]), Ok(true));
    let old = r.finish();
    assert_eq!(judge(&old, &b(0, 1, 1), 9), Verdict::Append);
    assert_eq!(judge(&old, &b(1, 0, 0), 9), Verdict::Append, "the pushed one was never claimed");
}

#[test]
fn golden_bytes() {
    let mut p = Producers::default();
    p.push(&b(2, 0, 4), Offset(9), 16, Offset(9));
    let hex: String = p.snapshot(Offset(14))[0].iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(
        hex,
        "0100000000000000000100000001\
         0000000000000007000201\
         000000000000000400000000000000090000000000000010"
            .replace(' ', "")
    );
}

#[test]
fn many_producers_go_into_bounded_pieces_that_must_be_whole_and_in_order() {
    let mut p = Producers::default();
    for id in 0..20_000 {
        p.push(&Sequenced { id, epoch: 0, first: 0, last: 0 }, Offset(id), 1, Offset(id));
    }
    let pieces = p.snapshot(Offset(20_000));
    assert!(pieces.len() > 1 && pieces.iter().all(|p| p.len() <= MAX_PIECE_BYTES));
    let mut r = SnapshotReader::default();
    assert_eq!(r.add(&pieces[1]), Err(SnapshotError::Order { expected: 0, found: 1 }));
    let mut r = SnapshotReader::default();
    for (i, piece) in pieces.iter().enumerate() {
        assert_eq!(r.add(piece), Ok(i + 1 == pieces.len()));
    }
    assert_eq!(r.finish().len(), 20_000);
}
