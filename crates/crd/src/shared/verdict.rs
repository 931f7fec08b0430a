//! The verdict table: how the state of an object shows as conditions, so that kstatus and Argo CD judge it rightly.
//!
//! | state | Ready | Reconciling | Stalled |
//! | --- | --- | --- | --- |
//! | never reconciled (schema default) | Unknown | - | - |
//! | working, waiting for the Cluster, rolling | False | True | - |
//! | done | True | - | - |
//! | rejected spec, conflict, permanent error | False | - | True |
//! | transient failure being retried | False | True, with the error | - |
//! | paused | as before | - | - |

use super::condition::ConditionChange;

/// How a pass over an object ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which row of the table.
    pub outcome: Outcome,
    /// One word for machines, such as `WaitingForCluster`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// A row of the verdict table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as the spec says.
    Done,
    /// Work goes on, or waits for something that will come.
    Working,
    /// Only a change of the spec or a person helps.
    Rejected,
    /// A failure that is tried again.
    Retrying,
    /// Nothing is done by wish; Ready stays as it was.
    Paused,
}

impl Verdict {
    /// A verdict.
    #[must_use]
    pub fn new(outcome: Outcome, reason: &str, message: impl Into<String>) -> Self {
        Self { outcome, reason: reason.to_owned(), message: message.into() }
    }

    /// The conditions Ready, Reconciling and Stalled for it.
    #[must_use]
    pub fn conditions(&self) -> Vec<ConditionChange> {
        let change = |type_, status| ConditionChange::new(type_, status, &self.reason, self.message.clone());
        let absent = ConditionChange::absent;
        match self.outcome {
            Outcome::Done => {
                vec![change("Ready", true), absent("Reconciling"), absent("Stalled"), absent("Paused")]
            }
            Outcome::Working | Outcome::Retrying => {
                vec![change("Ready", false), change("Reconciling", true), absent("Stalled"), absent("Paused")]
            }
            Outcome::Rejected => {
                vec![change("Ready", false), absent("Reconciling"), change("Stalled", true), absent("Paused")]
            }
            Outcome::Paused => vec![absent("Reconciling"), absent("Stalled"), change("Paused", true)],
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::super::condition::{apply_conditions, find};
    use super::*;

    #[test]
    fn the_verdict_table() {
        let now: Time = serde_json::from_value("2026-01-01T00:00:00Z".into()).unwrap();
        let rows = [
            (Outcome::Working, Some("False"), Some("True"), None),
            (Outcome::Done, Some("True"), None, None),
            (Outcome::Rejected, Some("False"), None, Some("True")),
            (Outcome::Retrying, Some("False"), Some("True"), None),
            (Outcome::Done, Some("True"), None, None),
            // As before: True.
            (Outcome::Paused, Some("True"), None, None),
        ];
        let mut list = Vec::new();
        for (outcome, ready, reconciling, stalled) in rows {
            apply_conditions(&mut list, &Verdict::new(outcome, "Reason", "message").conditions(), 1, &now);
            let status = |t: &str| find(&list, t).map(|c| c.status.clone());
            assert_eq!(status("Ready").as_deref(), ready, "{outcome:?}");
            assert_eq!(status("Reconciling").as_deref(), reconciling, "{outcome:?}");
            assert_eq!(status("Stalled").as_deref(), stalled, "{outcome:?}");
        }
    }
}
