//! When and how pods are replaced.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::defaults;
use crate::Duration;

/// Rolling updates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Updates {
    /// Auto: pods are replaced as soon as it is safe. Approve: only after `approvedPlan` names the plan in status.
    #[serde(default)]
    pub strategy: UpdateStrategy,
    /// Hash of the plan in `status.plan` that may be carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub approved_plan: Option<String>,
    /// Brokers that are replaced at once. Bookies and members of the quorum always go one by one.
    #[serde(default = "defaults::max_concurrent")]
    #[schemars(range(min = 1, max = 100))]
    pub max_concurrent: i32,
    /// Times (UTC) in which pods may be replaced; none = always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub windows: Vec<Window>,
}

impl Default for Updates {
    fn default() -> Self {
        Self {
            strategy: UpdateStrategy::Auto,
            approved_plan: None,
            max_concurrent: defaults::max_concurrent(),
            windows: Vec::new(),
        }
    }
}

/// Who starts an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategy {
    /// The operator.
    #[default]
    Auto,
    /// A person, by `approvedPlan`.
    Approve,
}

/// A weekly time span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Days on which it begins; none = every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7))]
    pub days: Vec<Weekday>,
    /// When it begins, HH:MM in UTC.
    #[schemars(regex(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$"), length(max = 5))]
    pub start: String,
    /// How long it lasts, at most 24h.
    pub duration: Duration,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "days")]
pub enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}
