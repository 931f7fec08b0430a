//! Committed offsets over the wire.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::ErrorCode;

use crate::{Client, ClientError, TopicPartition};

/// Partitions in one call.
const AT_ONCE: usize = 5_000;
/// Tries of single partitions that could be judged later, such as while their owner is away.
const TRIES: u32 = 20;

/// A committed position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedPosition {
    /// The partition.
    pub source: TopicPartition,
    /// The next record to be read; `None`: nothing is committed.
    pub offset: Option<i64>,
    /// For the reader alone.
    pub metadata: String,
    /// When it was committed, ms since the Unix epoch.
    pub commit_time_ms: i64,
}

fn identity(member: Option<(&str, u64)>) -> (String, u64) {
    member.map_or_else(Default::default, |(m, e)| (m.to_owned(), e))
}

/// Commits; the answer has a verdict per partition, in order. Partitions that can be judged later are tried again.
pub(super) async fn commit(
    client: &Client,
    group: &str,
    member: Option<(&str, u64)>,
    offsets: &[(TopicPartition, i64, u64)],
) -> Result<Vec<Result<(), ClientError>>, ClientError> {
    let (member, epoch) = identity(member);
    let what = format!("commit offsets of group {group}");
    let mut out: Vec<Result<(), ClientError>> = vec![Ok(()); offsets.len()];
    let mut open: Vec<usize> = (0..offsets.len()).collect();
    let mut attempt = 0;
    while !open.is_empty() {
        let mut later = Vec::new();
        for part in open.chunks(AT_ONCE) {
            let list: Vec<v1::OffsetToCommit> = part
                .iter()
                .map(|i| {
                    let (p, offset, topic_id) = &offsets[*i];
                    v1::OffsetToCommit {
                        topic: p.topic.to_string(),
                        partition: p.partition,
                        offset: *offset,
                        topic_id: *topic_id,
                        ..v1::OffsetToCommit::default()
                    }
                })
                .collect();
            let request = v1::CommitOffsetsRequest {
                group: group.to_owned(),
                member: member.clone(),
                epoch,
                offsets: list,
            };
            let answer = client
                .call_coordinator(group, &what, |call| {
                    let request = call.request(request.clone());
                    async move { call.groups().commit_offsets(request).await }
                })
                .await?;
            let mut results = answer.results.into_iter();
            for i in part {
                let p = &offsets[*i].0;
                out[*i] = match results.next() {
                    Some(v1::CommittedResult { error: None, .. }) => Ok(()),
                    Some(v1::CommittedResult { error: Some(e), .. }) => {
                        let e = ClientError::from_item(&format!("commit {p} in group {group}"), &e);
                        if e.retryable {
                            later.push(*i);
                        }
                        Err(e)
                    }
                    None => {
                        Err(ClientError::new(ErrorCode::Internal, format!("{what}: {p} is not answered")))
                    }
                };
            }
        }
        attempt += 1;
        if attempt >= TRIES {
            break;
        }
        if !later.is_empty() {
            tokio::time::sleep(client.backoff().wait(attempt)).await;
        }
        open = later;
    }
    Ok(out)
}

/// Committed positions of these partitions (with their topics' ids, 0 = not known), or of all that the group has.
pub(super) async fn fetch(
    client: &Client,
    group: &str,
    member: Option<(&str, u64)>,
    partitions: &[(TopicPartition, u64)],
) -> Result<Vec<CommittedPosition>, ClientError> {
    let (member, epoch) = identity(member);
    let what = format!("fetch offsets of group {group}");
    let parts: Vec<&[(TopicPartition, u64)]> =
        if partitions.is_empty() { vec![&[]] } else { partitions.chunks(AT_ONCE).collect() };
    let mut out = Vec::new();
    for part in parts {
        let partitions = part
            .iter()
            .map(|(p, topic_id)| v1::GroupPartition {
                topic: p.topic.to_string(),
                partition: p.partition,
                topic_id: *topic_id,
            })
            .collect();
        let request =
            v1::FetchOffsetsRequest { group: group.to_owned(), member: member.clone(), epoch, partitions };
        let answer = client
            .call_coordinator(group, &what, |call| {
                let request = call.request(request.clone());
                async move { call.groups().fetch_offsets(request).await }
            })
            .await?;
        for o in answer.offsets {
            if let Some(e) = &o.error {
                return Err(ClientError::from_item(&format!("{what}, {}/{}", o.topic, o.partition), e));
            }
            out.push(CommittedPosition {
                source: TopicPartition { topic: Arc::from(o.topic.as_str()), partition: o.partition },
                offset: (o.offset >= 0).then_some(o.offset),
                metadata: o.metadata,
                commit_time_ms: o.commit_time_ms,
            });
        }
    }
    Ok(out)
}
