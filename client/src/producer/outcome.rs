//! Asking the owner of a partition what became of a batch.

use std::sync::Arc;

use tidemill_proto::v1::{self, producer_outcome_response::Outcome};
use tidemill_record::BatchHeader;
use tidemill_types::ErrorCode;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{Client, ClientError};

/// A batch in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    producer_id: i64,
    epoch: i16,
    first: i32,
    last: i32,
}

impl Doubt {
    /// Of a sealed batch; `None` when it has no producer id.
    pub(super) fn of(batch: &[u8]) -> Option<Self> {
        let header = BatchHeader::parse(batch).ok()?;
        let p = header.producer()?;
        let last = p.last_sequence(header.last_offset_delta);
        Some(Self { producer_id: p.id, epoch: p.epoch, first: p.base_sequence, last })
    }
}

/// What the owner said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// In the log, at this offset (when it is remembered) and append time.
    Written(Option<i64>, i64),
    /// Not in the log, and never: the producer id is closed on the partition.
    NotWritten,
}

/// Asks until an owner answers or the time is over.
pub(super) async fn ask(
    client: &Client,
    topic: &Arc<str>,
    partition: u32,
    doubt: Doubt,
    deadline: Instant,
) -> Result<Fate, ClientError> {
    let what = format!("outcome of a batch in {topic}/{partition}");
    let mut last: Option<ClientError> = None;
    let mut attempt = 0;
    let mut stale = None;
    while Instant::now() < deadline {
        let known = client.inner.topology.route(topic, partition);
        let fresh = known.filter(|(_, generation)| stale.is_none_or(|s| *generation > s));
        let error = match fresh.map(|(route, generation)| (route.owner, route.epoch, generation)) {
            Some((Some(owner), epoch, generation)) => {
                match once(client, &what, &owner, (topic, partition, epoch), doubt, deadline).await {
                    Ok(Some(fate)) => return Ok(fate),
                    Ok(None) => {
                        let why = format!("{what}: the broker has forgotten it");
                        return Err(ClientError::new(ErrorCode::OutcomeUnknown, why));
                    }
                    Err(e) if !e.retryable => return Err(e),
                    Err(e) => {
                        match &e.owner {
                            Some(h) => client.inner.topology.hint(topic, partition, &h.address, h.epoch),
                            None => stale = Some(generation),
                        }
                        Some(e)
                    }
                }
            }
            other => {
                let seen = other.map(|(_, _, generation)| generation).or(stale).unwrap_or(0);
                let asking = client.inner.topology.refresh(client, topic, seen);
                match timeout_at(deadline, asking).await {
                    Ok(Ok(_)) => None,
                    Ok(Err(e)) if !e.retryable => return Err(e),
                    Ok(Err(e)) => Some(e),
                    Err(_) => break,
                }
            }
        };
        if error.is_some() {
            last = error;
            let pause = client.backoff().wait(attempt);
            attempt += 1;
            sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }
    Err(ClientError::deadline(&what, last.as_ref()))
}

async fn once(
    client: &Client,
    what: &str,
    owner: &str,
    (topic, partition, epoch): (&Arc<str>, u32, u64),
    doubt: Doubt,
    deadline: Instant,
) -> Result<Option<Fate>, ClientError> {
    let left = deadline.saturating_duration_since(Instant::now()).min(client.inner.config.attempt_timeout);
    let call = client.call_to(owner, left)?;
    let request = call.request(v1::ProducerOutcomeRequest {
        topic: topic.to_string(),
        partition,
        epoch,
        producer_id: doubt.producer_id,
        producer_epoch: doubt.epoch.into(),
        first_sequence: doubt.first,
        last_sequence: doubt.last,
        close: true,
    });
    let mut stub = call.producer();
    let answer = timeout_at(Instant::now() + left, stub.producer_outcome(request)).await;
    let answer = answer
        .map_err(|_| ClientError::deadline(what, None))?
        .map_err(|s| ClientError::from_status(what, &s))?
        .into_inner();
    Ok(match answer.outcome() {
        Outcome::Written => Some(Fate::Written(
            (answer.base_offset >= 0).then_some(answer.base_offset),
            answer.append_time_ms,
        )),
        // The batch was sent within the delivery time-out, which is far below the time that producers are remembered.
        Outcome::NotWritten | Outcome::NoState => Some(Fate::NotWritten),
        Outcome::Forgotten | Outcome::Unspecified => None,
    })
}
