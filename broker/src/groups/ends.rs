//! Where partitions begin and end, wherever their owners are.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use parking_lot::Mutex;
use tidemill_partition_log::OffsetSpec;
use tidemill_proto::v1::{self, consumer_client::ConsumerClient, list_offsets_partition::At};
use tidemill_runtime::net;
use tidemill_types::{ErrorCode, PartitionId};
use tonic::transport::{Channel, Endpoint};

use crate::{convert::topic::live_owner, core::Core, deadline::Deadline, fault::Fault};

/// What asking an owner may take.
const OWNER_WAIT: Duration = Duration::from_secs(2);
/// Partitions whose ends are remembered; beyond it all are asked for again.
const MAX_KNOWN: usize = 200_000;
/// Partitions in one question to another broker.
const AT_ONCE: usize = 4_000;

/// Known ends, and connections to other brokers.
#[derive(Default)]
pub(crate) struct Ends {
    /// Ends only grow, so an offset up to a known one needs no question.
    known: Mutex<HashMap<PartitionId, i64>>,
    channels: Mutex<HashMap<String, Channel>>,
}

/// First offset, and the one behind the last record.
pub(crate) type Range = (i64, i64);

impl Ends {
    /// An end that was seen at some time.
    pub(crate) fn seen(&self, id: PartitionId) -> Option<i64> {
        self.known.lock().get(&id).copied()
    }

    fn note(&self, id: PartitionId, end: i64) {
        let mut known = self.known.lock();
        if known.len() >= MAX_KNOWN && !known.contains_key(&id) {
            known.clear();
        }
        let e = known.entry(id).or_insert(end);
        *e = (*e).max(end);
    }

    /// A connection to another broker, made when it is used.
    pub(crate) fn channel(&self, address: &str) -> Option<Channel> {
        let mut channels = self.channels.lock();
        if let Some(c) = channels.get(address) {
            return Some(c.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}")).ok()?;
        let channel = net::lazy(&endpoint.connect_timeout(OWNER_WAIT));
        if channels.len() >= 1_000 {
            channels.clear();
        }
        channels.insert(address.to_owned(), channel.clone());
        Some(channel)
    }
}

/// One question: an offset by position or time. The answer to a time that no record reaches is the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Earliest,
    Latest,
    Time(i64),
}

/// Answers in the order of the questions; an owner that does not answer in time is a fault that can be retried.
pub(crate) async fn list(
    core: &Arc<Core>,
    questions: &[(PartitionId, Ask)],
    deadline: Deadline,
) -> Vec<Result<i64, Fault>> {
    let deadline = deadline.at_most(OWNER_WAIT);
    let mut out: Vec<Option<Result<i64, Fault>>> = vec![None; questions.len()];
    let mut remote: BTreeMap<String, Vec<(usize, PartitionId, String, Ask)>> = BTreeMap::new();
    for (i, (id, ask)) in questions.iter().enumerate() {
        if let Some(log) = core.owned.log(*id) {
            out[i] = Some(local(core, &log, *ask, deadline).await);
            continue;
        }
        let table = core.mirror.table();
        let name = table.topic(id.topic).filter(|t| !t.deleting).map(|t| t.name.to_string());
        let owner = table
            .partition(*id)
            .and_then(|p| live_owner(p, &table))
            .map(|m| crate::fault::address(&m.endpoint));
        match (name, owner) {
            (Some(name), Some(owner)) => remote.entry(owner).or_default().push((i, *id, name, *ask)),
            (Some(name), None) => out[i] = Some(Err(Fault::no_owner(&format!("{name}/{}", id.index)))),
            (None, _) => out[i] = Some(Err(Fault::unknown_topic(&id.topic.to_string()))),
        }
    }
    let calls = remote.iter().flat_map(|(owner, items)| items.chunks(AT_ONCE).map(move |c| (owner, c)));
    for answers in join_all(calls.map(|(owner, items)| ask_owner(core, owner, items, deadline))).await {
        for (i, r) in answers {
            out[i] = Some(r);
        }
    }
    let missing = || Err(Fault::new(ErrorCode::NotReady, "the owner of the partition did not answer"));
    let out: Vec<Result<i64, Fault>> = out.into_iter().map(|r| r.unwrap_or_else(missing)).collect();
    for ((id, ask), r) in questions.iter().zip(&out) {
        if let (Ask::Latest, Ok(end)) = (ask, r) {
            core.groups.ends.note(*id, *end);
        }
    }
    out
}

/// Beginning and end of each partition.
pub(crate) async fn ranges(
    core: &Arc<Core>,
    ids: &[PartitionId],
    deadline: Deadline,
) -> Vec<Result<Range, Fault>> {
    let questions: Vec<(PartitionId, Ask)> =
        ids.iter().flat_map(|id| [(*id, Ask::Earliest), (*id, Ask::Latest)]).collect();
    let answers = list(core, &questions, deadline).await;
    answers
        .chunks(2)
        .map(|pair| match pair {
            [Ok(start), Ok(end)] => Ok((*start, *end)),
            [Err(f), _] | [_, Err(f)] => Err(f.clone()),
            _ => Err(Fault::not_ready("an answer is missing")),
        })
        .collect()
}

async fn local(
    core: &Arc<Core>,
    log: &Arc<tidemill_partition_log::PartitionLog>,
    ask: Ask,
    deadline: Deadline,
) -> Result<i64, Fault> {
    let find = |spec| async move {
        let found = deadline
            .bound(log.list_offset(spec))
            .await
            .map_err(|_| Fault::not_ready("its log does not answer"))?;
        found.map_err(|e| Fault::new(e.code(), format!("offsets of {}: {e}", log.id())))
    };
    let spec = match ask {
        Ask::Earliest => OffsetSpec::Earliest,
        Ask::Latest => OffsetSpec::Latest,
        Ask::Time(ms) => OffsetSpec::Timestamp(ms),
    };
    let found = match find(spec).await? {
        Some(found) => Some(found),
        None => find(OffsetSpec::Latest).await?,
    };
    let _ = core;
    found.map(|f| f.offset.0).ok_or_else(|| Fault::not_ready("its log has no end"))
}

async fn ask_owner(
    core: &Arc<Core>,
    owner: &str,
    items: &[(usize, PartitionId, String, Ask)],
    deadline: Deadline,
) -> Vec<(usize, Result<i64, Fault>)> {
    let first = call(core, owner, items, deadline).await;
    // No record is that young: the end.
    let late: Vec<_> = first
        .iter()
        .zip(items)
        .filter(|((_, r), (.., ask))| matches!((r, ask), (Ok(-1), Ask::Time(_))))
        .map(|(_, (i, id, name, _))| (*i, *id, name.clone(), Ask::Latest))
        .collect();
    if late.is_empty() {
        return first;
    }
    let mut ends: HashMap<usize, _> = call(core, owner, &late, deadline).await.into_iter().collect();
    first.into_iter().map(|(i, r)| (i, ends.remove(&i).unwrap_or(r))).collect()
}

async fn call(
    core: &Arc<Core>,
    owner: &str,
    items: &[(usize, PartitionId, String, Ask)],
    deadline: Deadline,
) -> Vec<(usize, Result<i64, Fault>)> {
    let all = |f: Fault| items.iter().map(|(i, ..)| (*i, Err(f.clone()))).collect::<Vec<_>>();
    let silent = || Fault::new(ErrorCode::NotReady, format!("broker {owner} did not answer"));
    let Some(channel) = core.groups.ends.channel(owner) else { return all(silent()) };
    let partitions = items
        .iter()
        .map(|(_, id, name, ask)| v1::ListOffsetsPartition {
            topic: name.clone(),
            partition: id.index,
            epoch: 0,
            at: Some(match ask {
                Ask::Earliest => At::Earliest(true),
                Ask::Latest => At::Latest(true),
                Ask::Time(ms) => At::TimestampMs(*ms),
            }),
        })
        .collect();
    let mut client = ConsumerClient::new(channel).max_decoding_message_size(64 << 20);
    let answer = deadline.bound(client.list_offsets(v1::ListOffsetsRequest { partitions })).await;
    let Ok(Ok(answer)) = answer else { return all(silent()) };
    let mut listed = answer.into_inner().offsets.into_iter();
    items
        .iter()
        .map(|(i, ..)| {
            let r = match listed.next() {
                None => Err(silent()),
                Some(o) => match o.error {
                    None => Ok(o.offset),
                    Some(e) => Err(Fault::new(
                        ErrorCode::from_wire(&e.code).unwrap_or(ErrorCode::NotReady),
                        e.message,
                    )),
                },
            };
            (*i, r)
        })
        .collect()
}
