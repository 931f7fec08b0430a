//! `DeleteTopics`: tombstones.

use tidemill_proto::v1::{self, DeletionDone};
use tidemill_types::{
    ErrorCode,
    meta::{ControlAction, ControlReply, TombstoneRef, TopicDeletion, TopicTombstoned},
};

use super::{Caller, check_list, empty, other, topic};
use crate::{
    fault::{Fault, rejected},
    route::topic_name,
    service::admin::until,
};

const WHAT: &str = "delete topics";
/// How long the answer waits for this broker to see the tombstones.
const EFFECT_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

pub(super) async fn delete(
    caller: Caller<'_>,
    r: v1::DeleteTopicsRequest,
) -> Result<v1::DeleteTopicsResponse, Fault> {
    check_list("topics", r.topics.iter().map(|t| t.name.as_str()))?;
    if caller.deadline.passed() {
        return Err(Fault::deadline_not_written());
    }
    let mut results: Vec<Option<v1::DeletionResult>> = Vec::with_capacity(r.topics.len());
    let mut asked = Vec::new();
    for (at, d) in r.topics.iter().enumerate() {
        match read(d) {
            Ok((deletion, only_empty)) => {
                results.push(None);
                asked.push(Asked { at, deletion, only_empty });
            }
            Err(f) => results.push(Some(refused(&f))),
        }
    }
    // Looked at before, so that a topic with records is never a tombstone, not even for a moment.
    for a in asked.iter().filter(|a| a.only_empty) {
        if let Err(f) = empty::check(caller, &a.deletion.name, false).await {
            results[a.at] = Some(refused(&f));
        }
    }
    asked.retain(|a| results[a.at].is_none());
    if !asked.is_empty() {
        let action = ControlAction::TombstoneTopics(asked.iter().map(|a| a.deletion.clone()).collect());
        let reply = if r.dry_run {
            caller.attempt(WHAT, action).await?
        } else {
            caller.command(WHAT, action).await?
        };
        let ControlReply::Tombstoned(each) = reply else { return Err(other(WHAT)) };
        if each.len() != asked.len() {
            return Err(Fault::internal(WHAT, "an answer of another length"));
        }
        if !r.dry_run {
            seen(caller, &each).await;
        }
        for (a, done) in asked.iter().zip(each) {
            results[a.at] = Some(match done {
                Ok(done) if a.only_empty && !r.dry_run => once_more(caller, a, done).await,
                Ok(done) => shown(caller, &done),
                Err(why) => refused(&rejected(&format!("delete topic {}", a.deletion.name), &why)),
            });
        }
    }
    let missing = || refused(&Fault::internal(WHAT, "a deletion without a result"));
    Ok(v1::DeleteTopicsResponse { results: results.into_iter().map(|r| r.unwrap_or_else(missing)).collect() })
}

struct Asked {
    at: usize,
    deletion: TopicDeletion,
    only_empty: bool,
}

fn read(d: &v1::TopicDeletion) -> Result<(TopicDeletion, bool), Fault> {
    let only_empty = match v1::DeletePolicy::try_from(d.policy) {
        Ok(v1::DeletePolicy::Unspecified | v1::DeletePolicy::Tombstone) => false,
        Ok(v1::DeletePolicy::IfEmpty) => true,
        Err(_) => return Err(Fault::invalid("policy", d.policy, "TOMBSTONE, IF_EMPTY")),
    };
    let uid = (!d.claim_uid.is_empty()).then(|| d.claim_uid.clone());
    let deletion = TopicDeletion { name: topic_name(&d.name)?, uid, purge_after_ms: d.purge_after_ms };
    Ok((deletion, only_empty))
}

/// Until this broker refuses what the answer says is deleted.
async fn seen(caller: Caller<'_>, each: &[Result<TopicTombstoned, tidemill_types::meta::Rejection>]) {
    let new: Vec<_> = each
        .iter()
        .filter_map(|r| match r {
            Ok(TopicTombstoned::Tombstone { topic, .. }) => Some(topic.id),
            _ => None,
        })
        .collect();
    let all = |core: &crate::core::Core| {
        let table = core.mirror.table();
        new.iter().all(|id| table.is_tombstone(*id) || table.topic(*id).is_none())
    };
    until(caller.core, caller.deadline.at_most(EFFECT_WAIT), all).await;
}

/// A record may have come between the look and the tombstone: now that nobody writes any more, the look counts.
async fn once_more(caller: Caller<'_>, a: &Asked, done: TopicTombstoned) -> v1::DeletionResult {
    let TopicTombstoned::Tombstone { control, news: true, .. } = &done else { return shown(caller, &done) };
    let Err(fault) = empty::check(caller, &a.deletion.name, true).await else { return shown(caller, &done) };
    let back = TombstoneRef { topic: control.topic, version: control.version, due: false };
    match caller.command("restore a topic", ControlAction::RestoreTopics(vec![back])).await {
        Ok(_) => refused(&fault),
        // It stays a tombstone, with all its records: the caller hears of both.
        Err(e) => refused(&Fault::new(
            ErrorCode::OutcomeUnknown,
            format!(
                "{}; taking its tombstone back failed: {}",
                fault.to_proto().message,
                e.to_proto().message
            ),
        )),
    }
}

fn refused(f: &Fault) -> v1::DeletionResult {
    v1::DeletionResult {
        done: DeletionDone::Refused.into(),
        refused: Some(f.to_proto()),
        ..v1::DeletionResult::default()
    }
}

fn shown(caller: Caller<'_>, done: &TopicTombstoned) -> v1::DeletionResult {
    let none = v1::DeletionResult::default();
    match done {
        TopicTombstoned::Tombstone { topic, control, news } => {
            let done = if *news { DeletionDone::Tombstoned } else { DeletionDone::Already };
            let state = topic::state(topic, Some(control), None, &caller.core.config);
            v1::DeletionResult { done: done.into(), topic: Some(state), ..none }
        }
        TopicTombstoned::Absent => v1::DeletionResult { done: DeletionDone::Absent.into(), ..none },
        TopicTombstoned::NotHolder(holder) => v1::DeletionResult {
            done: DeletionDone::NotHolder.into(),
            held_by: holder.as_ref().map(topic::claim),
            ..none
        },
    }
}
