//! Consumer groups: planned by the operator's code; what the cluster does not take is told as such.

use tidemill_crd::{
    Outcome,
    plan::{ClusterGate, GroupObject, GroupObserved, plan_group},
};

use super::{
    read::{Manifest, Object},
    topics::Done,
};

/// Why configurations of groups are not carried out.
pub(super) const NOT_SUPPORTED: &str = "this cluster's interface does not take configurations of consumer groups yet: members configure themselves when they join";

/// What becomes of each ConsumerGroup.
pub(super) fn apply(manifests: &[Manifest], deleted: bool) -> Vec<(&Manifest, Done)> {
    let seen =
        GroupObserved { gate: ClusterGate::Open, group: None, supported: Err(NOT_SUPPORTED.to_owned()) };
    let of = |m: &Manifest| {
        let Object::Group(group) = &m.object else { return None };
        let plan = plan_group(GroupObject { group, deleted }, &seen);
        Some(match plan.verdict.outcome {
            Outcome::Rejected | Outcome::Retrying => Done::Refused(plan.verdict.reason, plan.verdict.message),
            _ => Done::Unchanged,
        })
    };
    manifests.iter().filter_map(|m| of(m).map(|done| (m, done))).collect()
}
