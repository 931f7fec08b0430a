//! What an answer of the data plane means for a Topic. Pure.

use tidemill_client::v1::{self, topic_result::Outcome as Answer};
use tidemill_crd::{ConditionChange, Outcome, Topic, Verdict, is_true, topic::TopicConfigWish};
use tidemill_types::ErrorCode;

/// A verdict, further conditions, and what the data plane has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) conditions: Vec<ConditionChange>,
    pub(super) state: Option<v1::TopicState>,
}

impl Judged {
    pub(super) fn only(outcome: Outcome, reason: &str, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::new(outcome, reason, message), conditions: Vec::new(), state: None }
    }
}

/// The verdict for an answer to a wish.
pub(super) fn judge(topic: &Topic, wish: &TopicConfigWish, result: v1::TopicResult) -> Judged {
    let done = result.done();
    match result.outcome {
        Some(Answer::Topic(state)) => served(topic, wish, state, done),
        Some(Answer::Refused(error)) => {
            refused(&error, result.held_by.as_ref(), &result.field, &result.allowed, &wish.name)
        }
        None => Judged::only(Outcome::Retrying, "Retrying", "an answer without content"),
    }
}

fn served(topic: &Topic, wish: &TopicConfigWish, state: v1::TopicState, _done: v1::TopicDone) -> Judged {
    let mut conditions = Vec::new();
    let number = |key: &str| state.config.get(key).and_then(|v| v.parse::<u32>().ok());
    let asked = wish.config.get("copies").and_then(|v| v.parse::<u32>().ok());
    conditions.push(match (asked, number("copies")) {
        (Some(asked), Some(have)) if have < asked => ConditionChange::new(
            "Replicated",
            false,
            "FewerCopies",
            format!("{have} copies instead of {asked}: the cluster has no more"),
        ),
        _ => ConditionChange::absent("Replicated"),
    });
    conditions.push(match wish.warnings.as_slice() {
        [] => ConditionChange::absent("Advice"),
        some => ConditionChange::new("Advice", true, "Replication", some.join("; ")),
    });
    let was_ready = topic.status.as_ref().is_some_and(|s| {
        is_true(&s.conditions, "Ready") && s.observed_generation == topic.metadata.generation
    });
    // A broker that restarts later is the cluster's business: Ready does not flicker (rule 3).
    let verdict = if state.partitions_without_owner > 0 && !was_ready {
        Verdict::new(Outcome::Working, "WaitingForOwners", "not every partition has an owner yet")
    } else {
        Verdict::new(Outcome::Done, "Ready", format!("{} partitions", state.partitions))
    };
    Judged { verdict, conditions, state: Some(state) }
}

fn refused(
    error: &v1::Error,
    held_by: Option<&v1::TopicClaim>,
    field: &str,
    allowed: &str,
    name: &str,
) -> Judged {
    let code = ErrorCode::from_wire(&error.code);
    let retryable = error.retryable;
    match code {
        Some(ErrorCode::TopicClaimed) => match held_by.filter(|h| !h.uid.is_empty()) {
            Some(holder) => Judged::only(
                Outcome::Rejected,
                "Conflict",
                format!("topic {name} belongs to {}: this one takes over when it is free", holder.owner),
            ),
            None => Judged::only(
                Outcome::Rejected,
                "Exists",
                format!(
                    "topic {name} is there and belongs to nobody: set spec.adoption to IfMatches or Take ({})",
                    error.message
                ),
            ),
        },
        _ if !field.is_empty() => Judged::only(
            Outcome::Rejected,
            "InvalidSpec",
            format!("{field}: {} (allowed: {allowed})", error.message),
        ),
        _ if retryable => Judged::only(Outcome::Retrying, "Retrying", error.message.clone()),
        _ => Judged::only(Outcome::Rejected, "Refused", format!("{} ({})", error.message, error.code)),
    }
}

/// What an answer to a deletion means.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Deleted {
    /// The finalizer may go.
    Done,
    /// It waits, and why.
    Waits(Verdict),
}

pub(super) fn deleted(result: &v1::DeletionResult) -> Deleted {
    match result.done() {
        // Somebody else holds it now: it is theirs.
        v1::DeletionDone::Tombstoned
        | v1::DeletionDone::Already
        | v1::DeletionDone::Absent
        | v1::DeletionDone::NotHolder => Deleted::Done,
        v1::DeletionDone::Refused | v1::DeletionDone::Unspecified => {
            let error = result.refused.clone().unwrap_or_default();
            let verdict = if error.retryable || error.code.is_empty() {
                Verdict::new(
                    Outcome::Retrying,
                    "Retrying",
                    format!("the deletion is tried again: {}", error.message),
                )
            } else {
                Verdict::new(
                    Outcome::Rejected,
                    "NotEmpty",
                    format!("not deleted: {} ({})", error.message, error.code),
                )
            };
            Deleted::Waits(verdict)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic() -> Topic {
        let spec = serde_json::from_value(serde_json::json!({"clusterRef": {"name": "c"}})).unwrap();
        let mut t = Topic::new("orders", spec);
        t.metadata.generation = Some(1);
        t
    }

    fn wish() -> TopicConfigWish {
        tidemill_crd::topic::wish("orders", &topic().spec, None).unwrap()
    }

    fn error(code: ErrorCode) -> v1::Error {
        v1::Error {
            code: code.wire().to_owned(),
            message: "why".into(),
            retryable: code.retryable(),
            ..v1::Error::default()
        }
    }

    fn of(outcome: Answer) -> v1::TopicResult {
        v1::TopicResult { outcome: Some(outcome), ..v1::TopicResult::default() }
    }

    #[test]
    fn rule_8_the_loser_says_whom_it_lost_to() {
        let mut r = of(Answer::Refused(error(ErrorCode::TopicClaimed)));
        r.held_by = Some(v1::TopicClaim { uid: "u".into(), owner: "Topic other/orders".into() });
        let j = judge(&topic(), &wish(), r);
        assert_eq!((j.verdict.outcome, j.verdict.reason.as_str()), (Outcome::Rejected, "Conflict"));
        assert!(j.verdict.message.contains("Topic other/orders"));
    }

    #[test]
    fn ready_waits_for_owners_once_and_does_not_flicker() {
        let state =
            |n| v1::TopicState { partitions: 2, partitions_without_owner: n, ..v1::TopicState::default() };
        let mut t = topic();
        let first = judge(&t, &wish(), of(Answer::Topic(state(1))));
        assert_eq!(first.verdict.outcome, Outcome::Working);
        let ready = judge(&t, &wish(), of(Answer::Topic(state(0))));
        assert_eq!(ready.verdict.outcome, Outcome::Done);
        let mut status = tidemill_crd::TopicStatus { observed_generation: Some(1), ..Default::default() };
        let now = serde_json::from_value("2026-01-01T00:00:00Z".into()).unwrap();
        tidemill_crd::apply_conditions(&mut status.conditions, &ready.verdict.conditions(), 1, &now);
        t.status = Some(status);
        assert_eq!(
            judge(&t, &wish(), of(Answer::Topic(state(2)))),
            Judged { state: Some(state(2)), ..ready }
        );
        t.metadata.generation = Some(2);
        assert_eq!(judge(&t, &wish(), of(Answer::Topic(state(2)))).verdict.outcome, Outcome::Working);
    }

    #[test]
    fn refusals_name_the_field_and_failures_are_tried_again() {
        let mut r = of(Answer::Refused(error(ErrorCode::InvalidArgument)));
        (r.field, r.allowed) = ("partitions".into(), "8 or more".into());
        let j = judge(&topic(), &wish(), r);
        assert_eq!(j.verdict.outcome, Outcome::Rejected);
        assert!(j.verdict.message.contains("partitions") && j.verdict.message.contains("8 or more"));
        let j = judge(&topic(), &wish(), of(Answer::Refused(error(ErrorCode::NotReady))));
        assert_eq!(j.verdict.outcome, Outcome::Retrying);
    }

    #[test]
    fn rule_1_absent_or_anothers_is_deleted() {
        let of =
            |done: v1::DeletionDone| deleted(&v1::DeletionResult { done: done.into(), ..Default::default() });
        for done in [
            v1::DeletionDone::Tombstoned,
            v1::DeletionDone::Already,
            v1::DeletionDone::Absent,
            v1::DeletionDone::NotHolder,
        ] {
            assert_eq!(of(done), Deleted::Done);
        }
        assert!(matches!(of(v1::DeletionDone::Unspecified), Deleted::Waits(_)), "no answer is not done");
    }
}
