//! `ProducerOutcome`: what became of a batch.

use std::sync::Arc;

use tidemill_partition_log::{BatchOutcome, FetchError, producers::Sequenced};
use tidemill_proto::v1::{self, producer_outcome_response::Outcome};

use crate::{
    core::Core,
    deadline::Deadline,
    fault::{Fault, opening_of},
    route::name_of,
};

/// Longest wait when the caller set no earlier deadline.
const WAIT: std::time::Duration = std::time::Duration::from_secs(30);

pub(super) async fn outcome(
    core: &Arc<Core>,
    r: v1::ProducerOutcomeRequest,
    deadline: Deadline,
) -> Result<v1::ProducerOutcomeResponse, Fault> {
    let deadline = deadline.at_most(WAIT);
    let topic = core.topic(&r.topic)?;
    let id = topic.partition(r.partition)?;
    let batch = batch(&r)?;
    let log = core.ready_log(&topic, id, r.epoch, deadline).await?;
    let found = deadline.bound(log.batch_outcome(batch, r.close)).await.map_err(|_| Fault::deadline())?;
    let found = found.map_err(|e| match e {
        FetchError::NotOwner => core.not_here(&topic, id),
        FetchError::NotReady => opening_of(&topic, id),
        e => Fault::new(e.code(), format!("outcome of a batch in {}: {e}", name_of(&topic, id))),
    })?;
    let (outcome, place) = match found {
        BatchOutcome::Written { place } => (Outcome::Written, place),
        BatchOutcome::NotWritten => (Outcome::NotWritten, None),
        BatchOutcome::NoState => (Outcome::NoState, None),
        BatchOutcome::Forgotten => (Outcome::Forgotten, None),
    };
    Ok(v1::ProducerOutcomeResponse {
        outcome: outcome.into(),
        base_offset: place.map_or(-1, |p| p.0.0),
        append_time_ms: place.map_or(-1, |p| p.1),
        epoch: log.epoch().0,
    })
}

fn batch(r: &v1::ProducerOutcomeRequest) -> Result<Sequenced, Fault> {
    if r.producer_id < 0 {
        return Err(Fault::invalid("producer_id", r.producer_id, "0 or above"));
    }
    let epoch = i16::try_from(r.producer_epoch).ok().filter(|e| *e >= 0);
    let epoch = epoch.ok_or_else(|| Fault::invalid("producer_epoch", r.producer_epoch, "0 to 32767"))?;
    for (field, value) in [("first_sequence", r.first_sequence), ("last_sequence", r.last_sequence)] {
        if value < 0 {
            return Err(Fault::invalid(field, value, "0 or above"));
        }
    }
    Ok(Sequenced { id: r.producer_id, epoch, first: r.first_sequence, last: r.last_sequence })
}
