use tidemill_crd::Outcome;

use super::{super::Action, world::*};

fn initialize(w: &World) -> Option<(String, usize)> {
    w.deeds().into_iter().find_map(|a| match a {
        Action::Initialize { cluster, voters } => Some((cluster, voters.len())),
        _ => None,
    })
}

#[test]
fn rule_21_the_quorum_is_made_when_everybody_is_empty() {
    let w = World::empty(3, 3, 1);
    assert_eq!(initialize(&w), Some((FRESH.to_owned(), 3)));
    assert_eq!(w.plan().verdict.outcome, Outcome::Working);
}

#[test]
fn rule_21_nobody_is_taken_for_empty_who_does_not_answer() {
    for who in ["c-meta-2", "c-bookie-hot-1"] {
        let mut silent = World::empty(3, 3, 1);
        silent.observed.metas.entry(who.to_owned()).and_modify(|m| *m = Err("it does not answer".into()));
        silent.observed.bookies.entry(who.to_owned()).and_modify(|m| *m = Err("it does not answer".into()));
        assert_eq!(initialize(&silent), None, "{who}");
        let mut absent = World::empty(3, 3, 1);
        absent.observed.metas.remove(who);
        absent.observed.bookies.remove(who);
        assert_eq!(initialize(&absent), None, "{who}");
        assert_eq!(absent.plan().verdict.outcome, Outcome::Working);
    }
}

#[test]
fn rule_21_a_cookie_or_a_recorded_id_stops_it() {
    let mut cookie = World::empty(1, 3, 1);
    cookie.bookie("hot", 2, "uuid-2", Some(ID));
    assert_eq!(initialize(&cookie), None);
    assert_eq!(cookie.stalled().0, "QuorumLost");

    // The volume claim of a single member was made anew.
    let mut emptied = World::empty(1, 3, 1);
    emptied.cluster.status = World::settled(1, 3, 1).cluster.status;
    assert_eq!(initialize(&emptied), None);
    let (reason, why) = emptied.stalled();
    assert!(reason == "QuorumLost" && why.contains(ID), "{why}");

    let mut noted = World::empty(1, 1, 1);
    noted.observed.claims.get_mut("data-c-bookie-hot-0").unwrap().uuid = Some("old".into());
    assert_eq!(initialize(&noted), None);
    assert!(noted.stalled().1.contains("data-c-bookie-hot-0"));
}

#[test]
fn rule_21_the_id_is_read_back_when_status_was_lost() {
    let mut w = World::settled(3, 3, 1);
    w.cluster.status = None;
    let plan = w.plan();
    assert_eq!(plan.verdict.outcome, Outcome::Done, "{:?}", plan.verdict);
    assert_eq!(plan.status.unwrap().cluster_id.as_deref(), Some(ID));
}

#[test]
fn volumes_of_another_cluster_are_refused() {
    let mut meta = World::settled(3, 3, 1);
    let Some(Ok(m)) = meta.observed.metas.get_mut("c-meta-2") else { panic!() };
    m.cluster = Some(FRESH.to_owned());
    assert_eq!(meta.stalled().0, "ForeignVolume");

    let mut refused = World::settled(3, 3, 1);
    refused.observed.bookies.insert("c-bookie-hot-1".into(), Err("it does not answer".into()));
    refused.pod("c-bookie-hot-1").ready = false;
    refused.pod("c-bookie-hot-1").foreign = true;
    let verdict = refused.plan().verdict;
    assert_eq!((verdict.outcome, verdict.reason.as_str()), (Outcome::Rejected, "ForeignVolume"));
    assert!(verdict.message.contains("c-bookie-hot-1"), "{}", verdict.message);
    let mut bookie = World::settled(3, 3, 1);
    bookie.bookie("hot", 1, "uuid-9", Some(FRESH));
    let (reason, why) = bookie.stalled();
    assert!(reason == "ForeignVolume" && why.contains("c-bookie-hot-1") && why.contains(FRESH), "{why}");
}

#[test]
fn an_emptied_member_is_replaced_in_two_steps() {
    let mut w = World::settled(3, 3, 1);
    let Some(Ok(m)) = w.observed.metas.get_mut("c-meta-2") else { panic!() };
    *m = crate::observe::MetaView {
        node: 900,
        member: "new".into(),
        role: "uninitialized".into(),
        ..Default::default()
    };
    let address = "c-meta-2.c-meta.ns.svc.cluster.local:7450".to_owned();
    assert_eq!(w.deeds(), [Action::RemoveVoter { node: 102, address: address.clone() }]);
    for m in w.observed.metas.values_mut().flatten() {
        m.voters.retain(|v| v.node != 102);
    }
    assert_eq!(w.deeds(), [Action::AddVoter { address }]);
}

#[test]
fn an_emptied_member_is_not_replaced_without_a_majority_of_the_rest() {
    let mut w = World::settled(3, 3, 1);
    w.observed.metas.insert("c-meta-0".into(), Err("it does not answer".into()));
    let Some(Ok(m)) = w.observed.metas.get_mut("c-meta-2") else { panic!() };
    *m = crate::observe::MetaView { node: 900, role: "uninitialized".into(), ..Default::default() };
    assert_eq!(w.deeds(), []);
}

#[test]
fn the_quorum_grows_one_by_one() {
    let mut w = World::settled(1, 3, 1);
    w.cluster.spec.meta.replicas = 3;
    let grown = World::empty(3, 3, 1);
    for i in 1..3 {
        let pod = format!("c-meta-{i}");
        w.observed.metas.insert(pod.clone(), grown.observed.metas[&pod].clone());
        w.observed.pods.insert(pod.clone(), grown.observed.pods[&pod].clone());
    }
    let adds: Vec<_> = w.deeds().into_iter().filter(|a| matches!(a, Action::AddVoter { .. })).collect();
    assert_eq!(adds, [Action::AddVoter { address: "c-meta-1.c-meta.ns.svc.cluster.local:7450".into() }]);
}
