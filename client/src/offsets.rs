//! Offsets of partitions: earliest, latest, by time.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future::join_all;
use tidemill_proto::v1::{self, list_offsets_partition};
use tidemill_types::ErrorCode;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{Client, ClientError, topology::Route};

/// Partitions in one call.
const MAX_PER_CALL: usize = 5_000;

/// Which offset is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The first that is still there.
    Earliest,
    /// Behind the last acknowledged record.
    Latest,
    /// The first record whose timestamp is at or after this, ms since the Unix epoch.
    Timestamp(i64),
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetQuery {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition index.
    pub partition: u32,
    /// Which offset.
    pub at: At,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetResult {
    /// Topic name.
    pub topic: Arc<str>,
    /// Partition index.
    pub partition: u32,
    /// The offset; `None` with a timestamp that no record reaches.
    pub offset: Option<i64>,
    /// Timestamp of the record found, ms since the Unix epoch; with [`At::Timestamp`] only.
    pub timestamp_ms: Option<i64>,
}

/// Answers all queries, in their order, following owner changes.
pub(crate) async fn list(
    client: &Client,
    queries: &[OffsetQuery],
    deadline: Instant,
) -> Result<Vec<OffsetResult>, ClientError> {
    let mut done: Vec<Option<OffsetResult>> = vec![None; queries.len()];
    let mut attempt = 0;
    let mut last = None;
    loop {
        let mut calls: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        let mut stale: HashMap<Arc<str>, u64> = HashMap::new();
        for (i, q) in queries.iter().enumerate().filter(|(i, _)| done[*i].is_none()) {
            let facts = client.inner.topology.topic(client, &q.topic).await?;
            if q.partition >= facts.partitions {
                return Err(unknown_partition(&q.topic, q.partition, facts.partitions));
            }
            match client.inner.topology.route(&q.topic, q.partition) {
                Some((Route { owner: Some(owner), .. }, _)) => calls.entry(owner).or_default().push(i),
                Some((_, generation)) => {
                    stale.insert(q.topic.clone(), generation);
                }
                None => {}
            }
        }
        let calls = calls.into_iter().flat_map(|(owner, items)| {
            items.chunks(MAX_PER_CALL).map(|c| (owner.clone(), c.to_vec())).collect::<Vec<_>>()
        });
        for outcome in
            join_all(calls.map(|(owner, items)| ask(client, owner, queries, items, deadline))).await
        {
            for (i, result) in outcome {
                let q = &queries[i];
                match result {
                    Ok(found) => done[i] = Some(found),
                    Err(e) if !e.retryable => return Err(e),
                    Err(e) => {
                        match &e.owner {
                            Some(h) => client.inner.topology.hint(&q.topic, q.partition, &h.address, h.epoch),
                            None => {
                                if let Some((_, g)) = client.inner.topology.route(&q.topic, q.partition) {
                                    stale.insert(q.topic.clone(), g);
                                }
                            }
                        }
                        last = Some(e);
                    }
                }
            }
        }
        if done.iter().all(Option::is_some) {
            return Ok(done.into_iter().flatten().collect());
        }
        if Instant::now() >= deadline {
            return Err(ClientError::deadline("list offsets", last.as_ref()));
        }
        let pause = last.as_ref().and_then(|e| e.retry_after).unwrap_or(Duration::ZERO);
        let pause = pause.max(client.backoff().wait(attempt));
        attempt += 1;
        sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
        for (topic, generation) in stale {
            client.inner.topology.refresh(client, &topic, generation).await?;
        }
    }
}

pub(crate) fn unknown_partition(topic: &str, partition: u32, partitions: u32) -> ClientError {
    ClientError::new(
        ErrorCode::UnknownPartition,
        format!("partition {topic}/{partition}: the topic has {partitions} partitions"),
    )
}

type Answers = Vec<(usize, Result<OffsetResult, ClientError>)>;

/// One call to one owner.
async fn ask(
    client: &Client,
    owner: Arc<str>,
    queries: &[OffsetQuery],
    items: Vec<usize>,
    deadline: Instant,
) -> Answers {
    let all = |e: ClientError| items.iter().map(|i| (*i, Err(e.clone()))).collect::<Answers>();
    let partitions = items.iter().map(|i| question(client, &queries[*i])).collect();
    let left = deadline.saturating_duration_since(Instant::now()).min(client.inner.config.attempt_timeout);
    let what = "list offsets";
    let call = match client.call_to(&owner, left) {
        Ok(call) => call,
        Err(e) => return all(e),
    };
    let request = call.request(v1::ListOffsetsRequest { partitions });
    let answer = match timeout_at(Instant::now() + left, call.consumer().list_offsets(request)).await {
        Err(_) => return all(ClientError::deadline(what, None)),
        Ok(Err(status)) => return all(ClientError::from_status(what, &status)),
        Ok(Ok(answer)) => answer.into_inner(),
    };
    let mut by_name: HashMap<(&str, u32), &v1::ListedOffset> = HashMap::new();
    for o in &answer.offsets {
        by_name.insert((o.topic.as_str(), o.partition), o);
    }
    items
        .iter()
        .map(|i| {
            let q = &queries[*i];
            let what = format!("list offsets of {}/{}", q.topic, q.partition);
            let result = match by_name.get(&(&*q.topic, q.partition)) {
                None => Err(ClientError::new(ErrorCode::Internal, format!("{what}: missing in the answer"))),
                Some(v1::ListedOffset { error: Some(e), .. }) => Err(ClientError::from_item(&what, e)),
                Some(o) => Ok(OffsetResult {
                    topic: q.topic.clone(),
                    partition: q.partition,
                    offset: (o.offset >= 0).then_some(o.offset),
                    timestamp_ms: matches!(q.at, At::Timestamp(_)).then_some(o.timestamp_ms),
                }),
            };
            (*i, result)
        })
        .collect()
}

fn question(client: &Client, q: &OffsetQuery) -> v1::ListOffsetsPartition {
    let epoch = client.inner.topology.route(&q.topic, q.partition).map_or(0, |(r, _)| r.epoch);
    let at = match q.at {
        At::Earliest => list_offsets_partition::At::Earliest(true),
        At::Latest => list_offsets_partition::At::Latest(true),
        At::Timestamp(ms) => list_offsets_partition::At::TimestampMs(ms),
    };
    v1::ListOffsetsPartition { topic: q.topic.to_string(), partition: q.partition, epoch, at: Some(at) }
}
