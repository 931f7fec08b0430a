//! `ListLedgers`.

use std::{collections::HashMap, sync::Arc};

use tidemill_proto::v1;
use tidemill_types::{
    LedgerId, LedgerRecord, MemberId, Offset, TopicId,
    meta::{Answer, Query},
};

use super::read;
use crate::{convert, core::Core, deadline::Deadline, fault::Fault, limits, route::topic_name};

/// Records of one read.
const PAGE: u32 = 1_000;

pub(super) async fn list(
    core: &Arc<Core>,
    request: v1::ListLedgersRequest,
    deadline: Deadline,
) -> Result<v1::ListLedgersResponse, Fault> {
    if request.limit > limits::MAX_LEDGERS {
        return Err(Fault::invalid("limit", request.limit, &format!("0 to {}", limits::MAX_LEDGERS)));
    }
    if request.partition.is_some() && request.topic.is_empty() {
        return Err(Fault::invalid("partition", "one without a topic", "topic and partition, or neither"));
    }
    let limit = if request.limit == 0 { limits::DEFAULT_LEDGERS } else { request.limit };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let records = match (request.ledger, request.topic.as_str()) {
        (0, "") => page(core, request.after, limit, deadline, |_| true).await?,
        (0, topic) => {
            topic_name(topic)?;
            let topic = core.any_topic(topic)?;
            if let Some(index) = request.partition {
                topic.partition(index)?;
            }
            let fits = |r: &LedgerRecord| {
                r.partition.topic == topic.id && request.partition.is_none_or(|i| r.partition.index == i)
            };
            page(core, request.after, limit, deadline, fits).await?
        }
        (id, _) => match read(core, Query::Ledger(LedgerId(id)), deadline).await? {
            Answer::Ledger(Some(l)) => vec![l],
            Answer::Ledger(None) => {
                return Err(Fault::new(
                    tidemill_types::ErrorCode::UnknownLedger,
                    format!("ledger {id} does not exist"),
                ));
            }
            _ => return Err(other()),
        },
    };
    let names = names(core);
    Ok(v1::ListLedgersResponse { ledgers: records.iter().map(|r| shown(core, r, &names)).collect() })
}

/// Ledgers after this id that fit, at most `limit`.
async fn page(
    core: &Core,
    after: u64,
    limit: usize,
    deadline: Deadline,
    fits: impl Fn(&LedgerRecord) -> bool,
) -> Result<Vec<LedgerRecord>, Fault> {
    let mut found = Vec::new();
    for_each(core, after, deadline, |r| {
        if fits(&r) {
            found.push(r);
        }
        found.len() < limit
    })
    .await?;
    Ok(found)
}

/// Walks all ledgers in order of id until `see` says that it has enough.
pub(super) async fn for_each(
    core: &Core,
    after: u64,
    deadline: Deadline,
    mut see: impl FnMut(LedgerRecord) -> bool,
) -> Result<(), Fault> {
    let mut after = (after > 0).then_some(LedgerId(after));
    loop {
        let Answer::Ledgers(records) = read(core, Query::Ledgers { after, limit: PAGE }, deadline).await?
        else {
            return Err(other());
        };
        let full = records.len() == usize::try_from(PAGE).unwrap_or(usize::MAX);
        after = records.last().map(|r| r.id);
        for r in records {
            if !see(r) {
                return Ok(());
            }
        }
        if !full {
            return Ok(());
        }
    }
}

/// Names of all members.
pub(super) fn names(core: &Core) -> HashMap<MemberId, String> {
    core.mirror.table().members().map(|m| (m.id, m.name.clone())).collect()
}

/// A ledger with its topic's name and its place in the chain.
pub(super) fn shown(core: &Core, r: &LedgerRecord, names: &HashMap<MemberId, String>) -> v1::Ledger {
    let table = core.mirror.table();
    let base: Option<Offset> = table
        .partition(r.partition)
        .and_then(|p| p.chain.iter().find(|c| c.ledger == r.id))
        .map(|c| c.base_offset);
    let topic: TopicId = r.partition.topic;
    let topic = table.topic(topic).map_or_else(String::new, |t| t.name.to_string());
    convert::ledger::to_proto(r, &topic, base, names)
}

fn other() -> Fault {
    Fault::internal("read ledgers", "an answer of another kind")
}
