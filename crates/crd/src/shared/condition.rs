//! Conditions: one entry per type; the transition time moves only when the status does (rule 3).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One aspect of an object's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Name of the aspect; each stands here once.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// True, False or Unknown.
    #[schemars(regex(pattern = "^(True|False|Unknown)$"), length(max = 7))]
    pub status: String,
    /// One word for machines.
    #[schemars(regex(pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"), length(min = 1, max = 1024))]
    pub reason: String,
    /// A sentence for people.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// The generation of the spec that this was judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    pub last_transition_time: Time,
}

/// What a condition shall say, without its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionChange {
    /// Name of the aspect.
    pub type_: &'static str,
    /// `None` takes the condition away.
    pub status: Option<bool>,
    /// One word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl ConditionChange {
    /// A condition that is true or false.
    #[must_use]
    pub fn new(type_: &'static str, status: bool, reason: &str, message: impl Into<String>) -> Self {
        Self { type_, status: Some(status), reason: reason.to_owned(), message: message.into() }
    }

    /// No such condition.
    #[must_use]
    pub fn absent(type_: &'static str) -> Self {
        Self { type_, status: None, reason: String::new(), message: String::new() }
    }
}

/// Longest message, bytes.
const MAX_MESSAGE: usize = 4096;

/// Brings `conditions` to what `changes` say. Order and transition times stay where the status stays, so that an
/// unchanged verdict gives an equal list.
pub fn apply_conditions(
    conditions: &mut Vec<Condition>,
    changes: &[ConditionChange],
    generation: i64,
    now: &Time,
) {
    for change in changes {
        let at = conditions.iter().position(|c| c.type_ == change.type_);
        let Some(status) = change.status else {
            if let Some(at) = at {
                conditions.remove(at);
            }
            continue;
        };
        let status = if status { "True" } else { "False" };
        let same = at.and_then(|at| conditions.get(at)).filter(|c| c.status == status);
        let new = Condition {
            type_: change.type_.to_owned(),
            status: status.to_owned(),
            reason: change.reason.clone(),
            message: clip(&change.message),
            observed_generation: Some(generation),
            last_transition_time: same.map_or_else(|| now.clone(), |c| c.last_transition_time.clone()),
        };
        match at.and_then(|at| conditions.get_mut(at)) {
            Some(old) => *old = new,
            None => conditions.push(new),
        }
    }
}

fn clip(message: &str) -> String {
    if message.len() <= MAX_MESSAGE {
        return message.to_owned();
    }
    let mut end = MAX_MESSAGE;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} …", message.get(..end).unwrap_or_default())
}

/// The condition of this type.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Whether the condition of this type is there and true.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        serde_json::from_value(serde_json::Value::String(text.to_owned())).unwrap()
    }

    #[test]
    fn rule_3_the_transition_time_moves_only_with_the_status() {
        let (t1, t2, t3) =
            (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:01:00Z"), at("2026-01-01T00:02:00Z"));
        let mut list = Vec::new();
        apply_conditions(&mut list, &[ConditionChange::new("Ready", false, "Rolling", "one left")], 1, &t1);
        apply_conditions(&mut list, &[ConditionChange::new("Ready", false, "Rolling", "none left")], 2, &t2);
        assert_eq!(list[0].last_transition_time, t1);
        assert_eq!((list[0].message.as_str(), list[0].observed_generation), ("none left", Some(2)));
        let before = list.clone();
        apply_conditions(&mut list, &[ConditionChange::new("Ready", false, "Rolling", "none left")], 2, &t3);
        assert_eq!(list, before, "the same verdict later is the same list");
        apply_conditions(&mut list, &[ConditionChange::new("Ready", true, "Settled", "done")], 2, &t3);
        assert_eq!(list[0].last_transition_time, t3);
        apply_conditions(&mut list, &[ConditionChange::absent("Ready")], 2, &t3);
        assert!(list.is_empty());
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let mut list = Vec::new();
        let long = "ä".repeat(MAX_MESSAGE);
        apply_conditions(
            &mut list,
            &[ConditionChange::new("Ready", true, "R", long)],
            1,
            &at("2026-01-01T00:00:00Z"),
        );
        assert!(list[0].message.len() < MAX_MESSAGE + 8 && list[0].message.ends_with('…'));
    }
}
