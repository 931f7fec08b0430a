use tidemill_crd::cluster::WhenDeleted;

use super::{
    super::{Action, deletion},
    world::*,
};
use crate::names::FINALIZER_VOLUMES;

#[test]
fn rule_1_retain_has_no_finalizer_and_nothing_to_do() {
    let w = World::settled(3, 3, 3);
    let d = deletion(&w.cluster, &w.observed);
    assert!(d.actions.is_empty() && !d.release);
}

#[test]
fn rule_1_delete_asks_nobody_and_takes_sets_and_volumes() {
    let mut w = World::settled(3, 3, 3);
    w.observed.quorum = Some(Err("down".into()));
    w.observed.metas.clear();
    w.cluster.spec.storage_policy.when_deleted = WhenDeleted::Delete;
    w.cluster.metadata.finalizers = Some(vec![FINALIZER_VOLUMES.to_owned()]);
    let d = deletion(&w.cluster, &w.observed);
    assert!(d.release);
    let claims = d.actions.iter().filter(
        |a| matches!(a, Action::DeleteClaim { uid, version, .. } if !uid.is_empty() && !version.is_empty()),
    );
    assert_eq!(claims.count(), 6);
    assert_eq!(d.actions.iter().filter(|a| matches!(a, Action::DeleteSet { .. })).count(), 3);
}

#[test]
fn the_policy_counts_and_not_the_finalizer() {
    let mut w = World::settled(3, 3, 3);
    w.cluster.metadata.finalizers = Some(vec![FINALIZER_VOLUMES.to_owned()]);
    let d = deletion(&w.cluster, &w.observed);
    assert!(d.release && d.actions.is_empty(), "changed back to Retain: the volumes stay");
}
