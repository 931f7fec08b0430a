//! Whatever is observed, what loses data is never planned without its proof.

use proptest::prelude::*;

use super::{super::Action, world::*};

fn states() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0..6usize, 5)
}

const STATES: [&str; 6] = ["rw", "ro", "limbo", "draining", "lost", "retired"];

proptest! {
    #[test]
    fn rule_10_a_claim_is_deleted_only_with_a_retired_uuid(
        states in states(),
        wished in 1..6i32,
        answers in any::<bool>(),
        pods in proptest::collection::vec(any::<bool>(), 5),
        noted in proptest::collection::vec(any::<bool>(), 5),
        wished_so in any::<bool>(),
    ) {
        let mut w = World::settled(3, 5, 1);
        w.cluster.spec.bookie_pools[0].replicas = wished;
        for (i, state) in (0..5).zip(&states) {
            w.member("hot", i, &format!("uuid-{i}"), STATES[*state]);
            let pod = format!("c-bookie-hot-{i}");
            if !pods[usize::try_from(i).unwrap()] {
                w.observed.pods.remove(&pod);
                w.observed.bookies.remove(&pod);
            }
            let claim = w.observed.claims.get_mut(&format!("data-{pod}")).unwrap();
            claim.draining = wished_so;
            if !noted[usize::try_from(i).unwrap()] {
                claim.uuid = None;
            }
        }
        if !answers {
            w.observed.quorum = Some(Err("no answer".into()));
        }
        let before = w.observed.sets["c-bookie-hot"].replicas;
        for action in w.plan().actions {
            match action {
                Action::DeleteClaim { name, uuid, uid, version } => {
                    let i: usize = name.rsplit('-').next().unwrap().parse().unwrap();
                    prop_assert!(answers && STATES[states[i]] == "retired", "{name}");
                    prop_assert_eq!(uuid, format!("uuid-{i}"));
                    prop_assert!(!uid.is_empty() && !version.is_empty());
                    prop_assert!(!pods[i], "its pod still runs");
                }
                Action::Apply(v) if v["metadata"]["name"] == "c-bookie-hot" && v["kind"] == "StatefulSet" => {
                    let now = i32::try_from(v["spec"]["replicas"].as_i64().unwrap()).unwrap();
                    for gone in now..before {
                        prop_assert!(answers && STATES[states[usize::try_from(gone).unwrap()]] == "retired");
                    }
                }
                Action::Initialize { .. } => prop_assert!(false, "the quorum is there"),
                _ => {}
            }
        }
    }

    #[test]
    fn rule_21_a_quorum_is_made_only_beside_empty_disks(
        metas in proptest::collection::vec(0..3u8, 3),
        bookies in proptest::collection::vec(0..3u8, 3),
        recorded in any::<bool>(),
    ) {
        let mut w = World::empty(3, 3, 1);
        for (i, kind) in metas.iter().enumerate() {
            let slot = w.observed.metas.get_mut(&format!("c-meta-{i}")).unwrap();
            match kind {
                0 => {}
                1 => *slot = Err("no answer".into()),
                _ => {
                    let Ok(m) = slot else { panic!() };
                    m.cluster = Some(ID.into());
                    m.role = "follower".into();
                }
            }
        }
        for (i, kind) in bookies.iter().enumerate() {
            match kind {
                0 => {}
                1 => drop(w.observed.bookies.insert(format!("c-bookie-hot-{i}"), Err("no answer".into()))),
                _ => w.bookie("hot", i32::try_from(i).unwrap(), "u", Some(ID)),
            }
        }
        if recorded {
            w.cluster.status = World::settled(3, 3, 1).cluster.status;
        }
        let made = w.deeds().iter().any(|a| matches!(a, Action::Initialize { .. }));
        let empty = metas.iter().chain(&bookies).all(|k| *k == 0) && !recorded;
        prop_assert_eq!(made, empty);
    }

    #[test]
    fn rule_11_at_most_one_pod_of_a_tier_that_was_ready(
        ready in proptest::collection::vec(any::<bool>(), 9),
        old in proptest::collection::vec(any::<bool>(), 9),
        under in 0..2u64,
    ) {
        let mut w = World::settled(3, 3, 3);
        w.quorum().under = Ok(under);
        for set in w.observed.sets.values_mut() {
            set.update_revision = Some("r2".into());
        }
        for ((pod, ready), old) in w.observed.pods.values_mut().zip(&ready).zip(&old) {
            pod.ready = *ready;
            pod.revision = Some(if *old { "r1" } else { "r2" }.into());
        }
        let replaced = w.replaced();
        for tier in ["c-meta", "c-bookie", "c-broker"] {
            let gone: Vec<_> = replaced.iter().filter(|p| p.starts_with(tier)).collect();
            prop_assert!(gone.len() <= 1, "{gone:?}");
            let others_away = w.observed.pods.values().filter(|p| p.name.starts_with(tier) && !p.ready && !gone.contains(&&p.name)).count();
            prop_assert!(gone.is_empty() || others_away == 0, "{tier}: {gone:?} beside {others_away} others");
        }
        if under > 0 {
            prop_assert!(!replaced.iter().any(|p| p.starts_with("c-bookie")));
        }
    }
}
