//! `ApplyTopics`.

use tidemill_proto::v1::{self, topic_result::Outcome};
use tidemill_types::{
    ErrorCode, TopicConfig, TopicId,
    meta::{Adoption, ControlAction, ControlReply, TopicApplied, TopicDone, TopicWish},
};

use super::{Caller, check_list, differences, other, topic};
use crate::{convert, fault::Fault, limits, route::topic_name, service::admin::until};

/// Longest wait for owners, ms.
const MAX_WAIT_MS: u32 = 30_000;
/// How long the answer waits for this broker to see what was done.
const EFFECT_WAIT: std::time::Duration = std::time::Duration::from_secs(5);
const WHAT: &str = "apply topics";

pub(super) async fn apply(
    caller: Caller<'_>,
    r: v1::ApplyTopicsRequest,
) -> Result<v1::ApplyTopicsResponse, Fault> {
    check_list("topics", r.topics.iter().map(|t| t.name.as_str()))?;
    if r.wait_ms > MAX_WAIT_MS {
        return Err(Fault::invalid("wait_ms", r.wait_ms, &format!("0 to {MAX_WAIT_MS}")));
    }
    if caller.deadline.passed() {
        return Err(Fault::deadline_not_written());
    }
    let mut results: Vec<Option<v1::TopicResult>> = Vec::with_capacity(r.topics.len());
    let mut wishes = Vec::new();
    for (at, wish) in r.topics.into_iter().enumerate() {
        match read(wish, caller) {
            Ok(wish) => {
                results.push(None);
                wishes.push((at, wish));
            }
            Err(f) => results.push(Some(topic::fault(&f))),
        }
    }
    let mut applied = Vec::new();
    for batch in batches(wishes) {
        let (places, wishes): (Vec<usize>, Vec<TopicWish>) = batch.into_iter().unzip();
        let names: Vec<_> = wishes.iter().map(|w| w.name.clone()).collect();
        let action = ControlAction::ApplyTopics(wishes);
        let reply = if r.dry_run {
            caller.attempt(WHAT, action).await?
        } else {
            caller.command(WHAT, action).await?
        };
        let ControlReply::Applied(each) = reply else { return Err(other(WHAT)) };
        if each.len() != places.len() {
            return Err(Fault::internal(WHAT, "an answer of another length"));
        }
        for ((at, name), result) in places.into_iter().zip(names).zip(each) {
            match result {
                Ok(a) => applied.push((at, a)),
                Err(why) => results[at] = Some(topic::refused(&format!("apply topic {name}"), &why)),
            }
        }
    }
    if !r.dry_run {
        seen(caller, &applied).await;
        if r.wait_ms > 0 {
            owned(caller, &applied, r.wait_ms).await;
        }
    }
    for (at, a) in applied {
        results[at] = Some(shown_result(caller, &a, r.dry_run));
    }
    let missing = || topic::fault(&Fault::internal(WHAT, "a wish without a result"));
    Ok(v1::ApplyTopicsResponse { results: results.into_iter().map(|r| r.unwrap_or_else(missing)).collect() })
}

/// One wish, checked as far as this broker can.
fn read(w: v1::TopicWish, caller: Caller<'_>) -> Result<TopicWish, Fault> {
    let name = topic_name(&w.name)?;
    if name.is_internal() {
        let allowed = "names that do not begin with two underscores: those belong to the system";
        return Err(Fault::field(ErrorCode::InvalidTopicName, "name", "an internal name", allowed));
    }
    if !(1..=limits::MAX_PARTITIONS).contains(&w.partitions) {
        let allowed = format!("1 to {}", limits::MAX_PARTITIONS);
        return Err(Fault::invalid("partitions", w.partitions, &allowed));
    }
    let adoption = match v1::Adoption::try_from(w.adoption) {
        Ok(v1::Adoption::Unspecified | v1::Adoption::Fail) => Adoption::Fail,
        Ok(v1::Adoption::IfMatches) => Adoption::IfMatches,
        Ok(v1::Adoption::Take) => Adoption::Take,
        Err(_) => return Err(Fault::invalid("adoption", w.adoption, "FAIL, IF_MATCHES, TAKE")),
    };
    Ok(TopicWish {
        name,
        partitions: w.partitions,
        config: convert::config::apply(TopicConfig::default(), &w.config, &caller.core.config)?,
        claim: w.claim.map(topic::read_claim),
        adoption,
    })
}

/// A command makes at most 100 000 partitions.
fn batches(wishes: Vec<(usize, TopicWish)>) -> Vec<Vec<(usize, TopicWish)>> {
    let mut all: Vec<Vec<(usize, TopicWish)>> = Vec::new();
    let mut room = 0;
    for wish in wishes {
        let needs = wish.1.partitions;
        match all.last_mut() {
            Some(batch) if needs <= room => {
                room -= needs;
                batch.push(wish);
            }
            _ => {
                room = limits::MAX_PARTITIONS.saturating_sub(needs);
                all.push(vec![wish]);
            }
        }
    }
    all
}

/// Until this broker serves, or refuses, what the answer tells.
async fn seen(caller: Caller<'_>, applied: &[(usize, TopicApplied)]) {
    let all = until(caller.core, caller.deadline.at_most(EFFECT_WAIT), |core| {
        let table = core.mirror.table();
        applied.iter().all(|(_, a)| {
            let topic = table.topic(a.topic.id).is_some_and(|t| t.version >= a.topic.version);
            let control = table.topic_control(a.topic.id).map(|c| c.version).unwrap_or_default();
            topic && control >= a.control.version
        })
    });
    if !all.await {
        tracing::warn!(topics = applied.len(), "applied topics are not seen by this broker yet");
    }
}

/// Waits until every partition of these topics has an owner, at most so long. When the wait ends the answer says how many have
/// none.
async fn owned(caller: Caller<'_>, applied: &[(usize, TopicApplied)], wait_ms: u32) {
    let topics: Vec<(TopicId, &TopicApplied)> = applied.iter().map(|(_, a)| (a.topic.id, a)).collect();
    let wait = caller.deadline.at_most(std::time::Duration::from_millis(wait_ms.into()));
    let all = until(caller.core, wait, |core| {
        let table = core.mirror.table();
        topics.iter().all(|(_, a)| topic::without_owner(&a.topic, &table) == 0)
    });
    if !all.await {
        tracing::debug!(topics = topics.len(), "not all partitions have owners yet");
    }
}

fn shown_result(caller: Caller<'_>, a: &TopicApplied, dry_run: bool) -> v1::TopicResult {
    let config = &caller.core.config;
    let table = caller.core.mirror.table();
    // What would be has no owners.
    let state = topic::state(&a.topic, Some(&a.control), (!dry_run).then_some(&*table), config);
    drop(table);
    let done = match a.done {
        TopicDone::Created => v1::TopicDone::Created,
        TopicDone::Changed => v1::TopicDone::Changed,
        TopicDone::Unchanged => v1::TopicDone::Unchanged,
        TopicDone::Undeleted => v1::TopicDone::Undeleted,
    };
    let changes = a.before.as_ref().map_or_else(Vec::new, |before| {
        // A change of nothing but the claim is one of the claim.
        let only_claim = a.done == TopicDone::Changed && *before == a.topic;
        let old = differences::claim_before(!only_claim && a.done != TopicDone::Undeleted, &a.control);
        differences::between(before, &a.topic, (old, a.control.claim.as_ref()), config)
    });
    v1::TopicResult {
        outcome: Some(Outcome::Topic(state)),
        done: done.into(),
        changes,
        ..v1::TopicResult::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_makes_a_bounded_number_of_partitions() {
        let wish = |partitions| {
            (
                0,
                TopicWish {
                    name: tidemill_types::TopicName::new("t").unwrap(),
                    partitions,
                    config: TopicConfig::default(),
                    claim: None,
                    adoption: Adoption::Fail,
                },
            )
        };
        let sizes = |all: Vec<u32>| -> Vec<usize> {
            batches(all.into_iter().map(wish).collect()).iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(vec![1; 1_000]), [1_000]);
        assert_eq!(sizes(vec![60_000, 40_000, 1, 100_000]), [2, 1, 1]);
        assert_eq!(sizes(vec![]), Vec::<usize>::new());
    }
}
