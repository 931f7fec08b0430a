//! `ListTopics`.

use tidemill_proto::v1;
use tidemill_types::{
    TopicConfig, TopicId,
    meta::{ControlAnswer, ControlQuery},
};

use super::{Caller, check_list, other, topic};
use crate::{convert::config, fault::Fault, route::topic_name};

/// Topics of one page; the default is a tenth.
const MAX_LIMIT: u32 = 10_000;
const DEFAULT_LIMIT: u32 = 1_000;

pub(super) async fn list(
    caller: Caller<'_>,
    r: v1::ListTopicsRequest,
) -> Result<v1::ListTopicsResponse, Fault> {
    let what = "list topics";
    if r.limit > MAX_LIMIT {
        return Err(Fault::invalid("limit", r.limit, &format!("0 to {MAX_LIMIT}")));
    }
    let limit = if r.limit == 0 { DEFAULT_LIMIT } else { r.limit };
    let query = if r.names.is_empty() {
        ControlQuery::Topics { after: (r.after > 0).then_some(TopicId(r.after)), limit }
    } else {
        check_list("names", r.names.iter().map(String::as_str))?;
        let names: Result<Vec<_>, Fault> = r.names.iter().map(|n| topic_name(n)).collect();
        ControlQuery::TopicsNamed(names?)
    };
    let (ControlAnswer::Topics(found), revision) = caller.query(what, query).await? else {
        return Err(other(what));
    };
    let whole = r.names.is_empty() && found.len() == usize::try_from(limit).unwrap_or(usize::MAX);
    let next_after = if whole { found.last().map_or(0, |(t, _)| t.id.0) } else { 0 };
    let table = caller.core.mirror.table();
    let topics = found
        .iter()
        // Internal topics are the system's own: nobody declares them.
        .filter(|(t, _)| !t.name.is_internal())
        .filter(|(_, c)| !r.claimed_only || c.as_ref().is_some_and(|c| c.claim.is_some()))
        .map(|(t, c)| topic::state(t, c.as_ref(), Some(&table), &caller.core.config))
        .collect();
    Ok(v1::ListTopicsResponse {
        topics,
        next_after,
        revision: revision.0,
        defaults: config::show(&TopicConfig::default(), &caller.core.config),
        max_copies: caller.core.config.max_copies.map_or(0, u32::from),
    })
}
