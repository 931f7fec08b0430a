//! One fetch from one broker.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tidemill_proto::v1;
use tidemill_record::Limits;
use tidemill_types::ErrorCode;
use tokio::time::timeout;

use super::{
    ConsumerConfig, Event, Gap, GapKind, TopicPartition,
    decode::{Decoded, decode},
    state::Staged,
};
use crate::{Client, ClientError};

/// A partition in a fetch.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) source: TopicPartition,
    pub(super) generation: u64,
    pub(super) from: i64,
    pub(super) epoch: u64,
}

/// What came for it.
pub(super) struct Fetched {
    pub(super) asked: Asked,
    pub(super) result: Result<Decoded, ClientError>,
}

/// Asks, waits and decodes, all in the fetch's own task.
pub(super) async fn fetch(
    client: &Client,
    config: &ConsumerConfig,
    broker: &Arc<str>,
    asked: &[Asked],
) -> Result<Vec<Fetched>, ClientError> {
    let what = format!("fetch from {broker}");
    let wait = config.max_wait.min(Duration::from_secs(300));
    let patience = client.inner.config.attempt_timeout + wait;
    let call = client.call_to(broker, patience)?;
    let partitions = asked
        .iter()
        .map(|a| v1::FetchPartition {
            topic: a.source.topic.to_string(),
            partition: a.source.partition,
            epoch: a.epoch,
            offset: a.from,
            max_bytes: config.partition_bytes,
        })
        .collect();
    let request = call.request(v1::FetchRequest {
        partitions,
        min_bytes: config.min_bytes,
        max_bytes: config.fetch_bytes.min(64 << 20),
        max_wait_ms: u32::try_from(wait.as_millis()).unwrap_or(300_000),
        as_records: false,
    });
    let answer = match timeout(patience, call.consumer().fetch(request)).await {
        Err(_) => return Err(ClientError::deadline(&what, None)),
        Ok(Err(status)) => return Err(ClientError::from_status(&what, &status)),
        Ok(Ok(answer)) => answer.into_inner(),
    };
    let limits = Limits { batch: 64 << 20, inflated: config.max_inflated_bytes, ..Limits::DEFAULT };
    let by_name: HashMap<(&str, u32), &Asked> =
        asked.iter().map(|a| ((&*a.source.topic, a.source.partition), a)).collect();
    let mut out = Vec::with_capacity(answer.partitions.len());
    for p in answer.partitions {
        let Some(asked) = by_name.get(&(p.topic.as_str(), p.partition)) else { continue };
        out.push(Fetched { asked: (*asked).clone(), result: one(asked, p, &limits) });
        // Decoding is the only long work here: let others run in between.
        tokio::task::yield_now().await;
    }
    Ok(out)
}

fn one(asked: &Asked, p: v1::FetchedPartition, limits: &Limits) -> Result<Decoded, ClientError> {
    let Some(e) = &p.error else {
        return Ok(decode(&asked.source, asked.generation, asked.from, p, limits));
    };
    let error = ClientError::from_item(&format!("fetch {}", asked.source), e);
    let staged = |position, event| Staged {
        source: asked.source.clone(),
        generation: asked.generation,
        position: Some(position),
        event: Some(event),
    };
    match error.code {
        Some(ErrorCode::Trimmed) if e.log_start > asked.from => {
            let (kind, source) = (GapKind::Trimmed, asked.source.clone());
            let gap = Event::Gap(Gap { source, kind, from: asked.from, to: e.log_start });
            Ok(Decoded { events: [staged(e.log_start, gap)].into(), next: e.log_start, stop: false })
        }
        Some(ErrorCode::OffsetOutOfRange) => {
            let event = Event::OutOfRange {
                source: asked.source.clone(),
                offset: asked.from,
                log_start: e.log_start,
                log_end: e.log_end,
            };
            Ok(Decoded { events: [staged(asked.from, event)].into(), next: asked.from, stop: true })
        }
        _ => Err(error),
    }
}

/// Partitions of topics now; topics that do not answer are left out.
pub(super) async fn counts(client: &Client, topics: Vec<Arc<str>>) -> Vec<(Arc<str>, u32)> {
    let mut out = Vec::with_capacity(topics.len());
    for topic in topics {
        let seen = client.inner.topology.route(&topic, 0).map_or(0, |(_, generation)| generation);
        if let Ok(facts) = client.inner.topology.refresh(client, &topic, seen).await {
            out.push((topic, facts.partitions));
        }
    }
    out
}
