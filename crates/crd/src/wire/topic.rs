//! Topics.

use tidemill_proto::v1::{self, topic_result::Outcome as Answer};

use crate::{
    plan::{Claim, ClusterGate, Refusal, Tombstone, TopicAction, TopicObserved, TopicSeen},
    topic::Adoption,
};

fn claim_of(c: &v1::TopicClaim) -> Claim {
    Claim { uid: c.uid.clone(), owner: c.owner.clone() }
}

/// A topic as the cluster tells it.
#[must_use]
pub fn seen(t: &v1::TopicState) -> TopicSeen {
    TopicSeen {
        id: t.id,
        partitions: t.partitions,
        config: t.config.clone().into_iter().collect(),
        claim: t.claim.as_ref().map(claim_of),
        tombstone: t
            .tombstone
            .as_ref()
            .map(|t| Tombstone { purge_at_ms: t.purge_at_ms, former: t.former.as_ref().map(claim_of) }),
        without_owner: t.partitions_without_owner,
    }
}

/// What an answer to a question for topics says of one of them; the defaults are those of the answer.
#[must_use]
pub fn observed(topic: Option<&v1::TopicState>, page: &v1::ListTopicsResponse) -> TopicObserved {
    TopicObserved {
        gate: ClusterGate::Open,
        topic: topic.map(seen),
        defaults: page.defaults.clone().into_iter().collect(),
        max_copies: u8::try_from(page.max_copies).ok().filter(|n| *n > 0),
    }
}

/// What the cluster is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// `ApplyTopics`.
    Apply(v1::TopicWish),
    /// `DeleteTopics`.
    Delete(v1::TopicDeletion),
    /// `ReleaseClaims`.
    Release(v1::ClaimRelease),
}

/// An action as a request.
#[must_use]
pub fn request(action: TopicAction) -> Request {
    match action {
        TopicAction::Apply { wish, claim, adoption } => Request::Apply(v1::TopicWish {
            name: wish.name,
            partitions: wish.partitions,
            config: wish.config.into_iter().collect(),
            claim: Some(v1::TopicClaim { uid: claim.uid, owner: claim.owner }),
            adoption: match adoption {
                Adoption::Fail => v1::Adoption::Fail,
                Adoption::IfMatches => v1::Adoption::IfMatches,
                Adoption::Take => v1::Adoption::Take,
            }
            .into(),
        }),
        TopicAction::Delete { name, uid, purge_after_ms, if_empty } => {
            let policy = if if_empty { v1::DeletePolicy::IfEmpty } else { v1::DeletePolicy::Tombstone };
            Request::Delete(v1::TopicDeletion { name, claim_uid: uid, purge_after_ms, policy: policy.into() })
        }
        TopicAction::Release { name, uid } => Request::Release(v1::ClaimRelease { name, claim_uid: uid }),
    }
}

fn refusal(e: &v1::Error) -> Refusal {
    let (code, message) = (e.code.clone(), e.message.clone());
    Refusal { code, message, retryable: e.retryable, ..Refusal::default() }
}

/// What became of a wish: the topic, or why not.
///
/// # Errors
/// What the cluster refused; an answer without content is one that nobody gave.
pub fn applied(result: &v1::TopicResult) -> Result<&v1::TopicState, Box<Refusal>> {
    match &result.outcome {
        Some(Answer::Topic(state)) => Ok(state),
        Some(Answer::Refused(e)) => Err(Box::new(Refusal {
            field: result.field.clone(),
            allowed: result.allowed.clone(),
            held_by: result.held_by.as_ref().map(|c| c.owner.clone()),
            ..refusal(e)
        })),
        None => {
            let message = "an answer without content".to_owned();
            Err(Box::new(Refusal { message, ..Refusal::default() }))
        }
    }
}

/// What became of a deletion: done, which is also what is absent or somebody else's by now (rule 1), or why not.
///
/// # Errors
/// What the cluster refused.
pub fn deleted(result: &v1::DeletionResult) -> Result<(), Box<Refusal>> {
    match result.done() {
        v1::DeletionDone::Tombstoned
        | v1::DeletionDone::Already
        | v1::DeletionDone::Absent
        | v1::DeletionDone::NotHolder => Ok(()),
        v1::DeletionDone::Refused | v1::DeletionDone::Unspecified => {
            Err(Box::new(result.refused.as_ref().map(refusal).unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::ErrorCode;

    use super::*;
    use crate::{Outcome, plan::refused};

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
        let v = refused(&applied(&r).unwrap_err());
        assert_eq!((v.outcome, v.reason.as_str()), (Outcome::Rejected, "Conflict"));
        assert!(v.message.contains("Topic other/orders"));
    }

    #[test]
    fn refusals_name_the_field_and_failures_are_tried_again() {
        let mut r = of(Answer::Refused(error(ErrorCode::InvalidArgument)));
        (r.field, r.allowed) = ("partitions".into(), "8 or more".into());
        let v = refused(&applied(&r).unwrap_err());
        assert_eq!((v.outcome, v.reason.as_str()), (Outcome::Rejected, "InvalidSpec"));
        assert!(v.message.contains("partitions") && v.message.contains("8 or more"));
        for r in [of(Answer::Refused(error(ErrorCode::NotReady))), v1::TopicResult::default()] {
            assert_eq!(refused(&applied(&r).unwrap_err()).outcome, Outcome::Retrying);
        }
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
            assert_eq!(of(done), Ok(()));
        }
        let none = of(v1::DeletionDone::Unspecified).unwrap_err();
        assert_eq!(refused(&none).outcome, Outcome::Retrying, "no answer is not done");
    }
}
