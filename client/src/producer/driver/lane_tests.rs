//! The order and the fate of batches, step by step.

use std::time::Duration;

use bytes::Bytes;
use tidemill_types::ErrorCode;
use tokio::time::Instant;

use super::lane::Lane;
use crate::{
    ClientError, NotDelivered,
    producer::{
        accumulator::{Body, Closed},
        delivery::BatchState,
    },
};

const LIFE: Duration = Duration::from_secs(10);

fn lane(start: Instant, batches: u8) -> Lane {
    let mut lane = Lane::new(true, 5, false);
    for n in 0..batches {
        let body = Body::Sealed(Bytes::from(vec![n]));
        let state = BatchState::new(0);
        lane.push(Closed { state, reserved: 1, born: start, count: 1, body }, start + LIFE);
    }
    lane
}

/// Sends all that may go: number and content.
fn send(lane: &mut Lane) -> Vec<(u64, u8)> {
    let mut out = Vec::new();
    while lane.peek().is_some() {
        let s = lane.send().unwrap();
        out.push((s.number, s.bytes[0]));
    }
    out
}

fn refusal(code: ErrorCode) -> Result<(Option<i64>, i64), ClientError> {
    Err(ClientError::new(code, "test"))
}

fn fates(lane: &mut Lane) -> Vec<Result<(), NotDelivered>> {
    lane.decided.drain(..).map(|d| d.outcome.map(|_| ()).map_err(|e| e.kind)).collect()
}

#[test]
fn nothing_overtakes_a_batch_that_failed() {
    let mut lane = lane(Instant::now(), 6);
    let first = send(&mut lane);
    assert_eq!(first.iter().map(|f| f.1).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(!lane.answer(first[0].0, 1, refusal(ErrorCode::NotOwner)).again);
    for (number, _) in &first[1..4] {
        assert!(!lane.answer(*number, 1, refusal(ErrorCode::OutOfOrderSequence)).again);
        assert_eq!(send(&mut lane), []);
    }
    assert!(lane.answer(first[4].0, 1, refusal(ErrorCode::OutOfOrderSequence)).again);
    assert_eq!(send(&mut lane).iter().map(|f| f.1).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(fates(&mut lane), []);
}

/// The broker remembers five batches: one in doubt is not followed by more than four, however many of them succeeded.
#[test]
fn a_batch_in_doubt_holds_back_what_its_broker_would_forget_it_for() {
    let mut lane = lane(Instant::now(), 9);
    let first = send(&mut lane);
    lane.answer(first[0].0, 1, refusal(ErrorCode::OutcomeUnknown));
    let mut again = false;
    for (number, _) in &first[1..] {
        again = lane.answer(*number, 1, Ok((Some(1), 1))).again;
    }
    assert!(again);
    assert_eq!(fates(&mut lane).len(), 4);
    let second = send(&mut lane);
    assert_eq!(second.iter().map(|f| f.1).collect::<Vec<_>>(), [0]);
    lane.answer(second[0].0, 1, Ok((Some(0), 1)));
    assert_eq!(send(&mut lane).iter().map(|f| f.1).collect::<Vec<_>>(), [5, 6, 7, 8]);
}

#[test]
fn a_time_out_tells_doubt_from_refusal() {
    let start = Instant::now();
    let end = start + LIFE;
    // Refused each time, the rest never sent.
    let mut refused = lane(start, 2);
    let sent = send(&mut refused);
    for (number, _) in sent {
        refused.answer(number, 1, refusal(ErrorCode::NotWritten));
    }
    assert!(refused.expire(start).0.spent.is_none());
    assert!(refused.expire(end).0.spent.is_some());
    assert_eq!(fates(&mut refused), [Err(NotDelivered::NotWritten); 2]);
    // On its way.
    let mut silent = lane(start, 1);
    send(&mut silent);
    silent.expire(end);
    assert_eq!(fates(&mut silent), [Err(NotDelivered::Unknown)]);
    // The stream broke once; refused since.
    let mut cut = lane(start, 1);
    send(&mut cut);
    assert!(cut.cut(&ClientError::new(ErrorCode::NotReady, "test")).again);
    let again = send(&mut cut);
    cut.answer(again[0].0, 1, refusal(ErrorCode::NotOwner));
    cut.expire(end);
    assert_eq!(fates(&mut cut), [Err(NotDelivered::Unknown)]);
}

/// A batch that can never be written leaves a gap: what was sealed behind it fails, and a late answer changes nothing.
#[test]
fn a_lasting_failure_spends_the_producer_id() {
    let mut lane = lane(Instant::now(), 7);
    let sent = send(&mut lane);
    let todo = lane.answer(sent[0].0, 1, refusal(ErrorCode::MessageTooLarge));
    assert!(todo.spent.is_some() && lane.is_spent());
    assert_eq!(fates(&mut lane), [Err(NotDelivered::NotWritten); 3]);
    for (number, _) in &sent[1..] {
        lane.answer(*number, 1, refusal(ErrorCode::OutOfOrderSequence));
    }
    assert!(!lane.is_spent() && lane.is_empty());
    assert_eq!(fates(&mut lane), [Err(NotDelivered::NotWritten); 4]);
    lane.answer(sent[4].0, 1, Ok((Some(1), 1)));
    assert_eq!(fates(&mut lane), []);
    let todo = self::lane(Instant::now(), 1).answer(0, 0, refusal(ErrorCode::ProducerFenced));
    assert!(todo.fenced);
}
