use tidemill_crd::Quantity;

use super::{super::Action, world::*};

#[test]
fn rule_9_claims_grow_first_then_the_set_is_made_anew() {
    let mut w = World::settled(3, 2, 1);
    w.cluster.spec.bookie_pools[0].storage.size = Quantity::new("20Gi");
    let plan = w.plan();
    let grown =
        plan.actions.iter().filter(|a| matches!(a, Action::GrowClaim { size, .. } if size == "20Gi")).count();
    assert_eq!(grown, 2);
    let applied = |w: &World| {
        w.plan().actions.iter().any(
            |a| matches!(a, Action::Apply(v) if v["kind"] == "StatefulSet" && v["metadata"]["name"] == "c-bookie-hot"),
        )
    };
    assert!(!applied(&w), "the API server would refuse it for ever");
    for claim in w.observed.claims.values_mut().filter(|c| c.pool.is_some()) {
        claim.requested = Some("20Gi".into());
    }
    assert!(w.deeds().contains(&Action::OrphanSet {
        name: "c-bookie-hot".into(),
        uid: "c-bookie-hot-uid".into(),
        version: "7".into()
    }));
    assert!(!applied(&w));
    w.observed.sets.remove("c-bookie-hot");
    assert!(applied(&w), "made anew");
}

#[test]
fn rule_9_a_volume_that_shrinks_is_named_and_never_applied() {
    let mut w = World::settled(3, 2, 1);
    w.cluster.spec.bookie_pools[0].storage.size = Quantity::new("5Gi");
    let plan = w.plan();
    let said = plan.conditions.iter().find(|c| c.type_ == "StorageReady").unwrap();
    assert_eq!((said.status, said.reason.as_str()), (Some(false), "ImmutableField"));
    assert!(said.message.contains("c-bookie-hot"));
    assert!(!plan.actions.iter().any(|a| matches!(a, Action::GrowClaim { .. } | Action::OrphanSet { .. })));
}

#[test]
fn rule_10_the_uuid_is_noted_once_and_never_over_another() {
    let mut w = World::settled(3, 2, 1);
    w.observed.claims.get_mut("data-c-bookie-hot-1").unwrap().uuid = None;
    let notes = |w: &World| {
        w.plan()
            .actions
            .into_iter()
            .filter(|a| matches!(a, Action::NoteUuid { claim, .. } if claim.contains("bookie")))
            .collect::<Vec<_>>()
    };
    assert_eq!(notes(&w), [Action::NoteUuid { claim: "data-c-bookie-hot-1".into(), uuid: "uuid-1".into() }]);
    // Swapped by hand.
    w.observed.claims.get_mut("data-c-bookie-hot-1").unwrap().uuid = Some("uuid-7".into());
    assert_eq!(notes(&w), []);
    let plan = w.plan();
    let said = plan.conditions.iter().find(|c| c.type_ == "StorageReady").unwrap();
    assert!(said.message.contains("uuid-7") && said.message.contains("uuid-1"), "{}", said.message);
    // A retired uuid's volume was reformatted: that is how it shall be.
    w.member("hot", 1, "uuid-7", "retired");
    assert_eq!(notes(&w).len(), 1);
}

#[test]
fn rule_10_a_volume_that_was_replaced_by_hand_is_said_until_its_uuid_is_retired() {
    let mut w = World::settled(3, 3, 1);
    let said = |w: &World| {
        let plan = w.plan();
        let said = plan.conditions.iter().find(|c| c.type_ == "StorageReady").unwrap();
        (said.reason.clone(), said.message.clone())
    };
    // Claim and pod were deleted: a new uuid, and a claim on which only the new one can be noted.
    w.bookie("hot", 1, "uuid-9", Some(ID));
    w.member("hot", 1, "uuid-9", "rw");
    let (reason, message) = said(&w);
    assert_eq!(reason, "VolumeReplaced");
    assert!(
        message.contains("uuid-1") && message.contains("uuid-9") && message.contains("declare"),
        "{message}"
    );
    w.member("hot", 1, "uuid-1", "lost");
    assert!(said(&w).1.contains("being copied"));
    w.member("hot", 1, "uuid-1", "retired");
    assert_eq!(said(&w).0, "VolumesReady");
}
