//! Pools of bookies: out at once, in only by drain, retirement and then removal of pod and volume (rule 10).

use tidemill_crd::cluster::BookiePool;

use super::{Action, Draft, Input, consent::Consent, volumes};
use crate::{
    names::{Names, Role},
    observe::{ClaimView, SetView},
    render::{Wishes, claim_name},
};

/// Why a bookie cannot go yet.
struct Blocked(String);

pub(super) fn plan(input: &Input<'_>, consent: &Consent, wishes: &mut Wishes, draft: &mut Draft) {
    let mut blocked = Vec::new();
    let mut shrinking = false;
    for pool in &input.cluster.spec.bookie_pools {
        let name = input.names.set(Role::Bookie, Some(&pool.name));
        let set = input.observed.sets.get(&name);
        let replicas = match set {
            Some(set) if set.replicas > pool.replicas => {
                shrinking = true;
                shrink(input, consent, set, pool.replicas, draft, &mut blocked)
            }
            Some(set) => {
                let replicas = grow(input, set, pool.replicas);
                shrinking |= replicas < pool.replicas;
                replicas
            }
            None => pool.replicas,
        };
        wishes.pools.push((pool.clone(), replicas));
        leftovers(input, &name, replicas, draft);
        undrain(input, &name, replicas.min(pool.replicas), draft);
    }
    for set in removed(input) {
        shrinking = true;
        let replicas = shrink(input, consent, set, 0, draft, &mut blocked);
        leftovers(input, &set.name, replicas, draft);
        if replicas < set.replicas {
            draft.actions.push(Action::ScaleSet {
                name: set.name.clone(),
                version: set.version.clone(),
                replicas,
            });
        } else if replicas == 0 && !pods_of(input, &set.name) && !claims_of(input, &set.name) {
            draft.step("DeletePool", &set.name, None);
            draft.actions.push(Action::DeleteSet {
                name: set.name.clone(),
                uid: set.uid.clone(),
                version: set.version.clone(),
            });
        }
    }
    if let Some(Blocked(why)) = blocked.first() {
        draft.say("ScaledDown", false, "WaitingForRetirement", why.clone());
    } else if shrinking {
        draft.say("ScaledDown", false, "ScalingDown", "bookies are being removed one by one");
    } else {
        draft.conditions.push(tidemill_crd::ConditionChange::absent("ScaledDown"));
    }
}

/// Sets of pools that the spec does not name any more.
fn removed<'a>(input: &'a Input<'_>) -> impl Iterator<Item = &'a SetView> {
    let named = |pool: &str| input.cluster.spec.bookie_pools.iter().any(|p: &BookiePool| p.name == pool);
    input
        .observed
        .sets
        .values()
        .filter(move |s| s.role == Some(Role::Bookie) && !s.deleting && !s.pool.as_deref().is_some_and(named))
}

fn pods_of(input: &Input<'_>, set: &str) -> bool {
    input.observed.pods.keys().any(|p| p.rsplit_once('-').is_some_and(|(s, _)| s == set))
}

fn claims_of(input: &Input<'_>, set: &str) -> bool {
    input.observed.claims.keys().any(|c| c.rsplit_once('-').is_some_and(|(s, _)| s == claim_name_stem(set)))
}

fn claim_name_stem(set: &str) -> String {
    format!("{}-{set}", crate::render::CLAIM)
}

/// The number of pods that the set may have now. Only the highest ordinal goes, one at a time.
fn shrink(
    input: &Input<'_>,
    consent: &Consent,
    set: &SetView,
    wished: i32,
    draft: &mut Draft,
    blocked: &mut Vec<Blocked>,
) -> i32 {
    // Draining begins for all that go, so that nothing is copied to a bookie that goes next.
    let mut replicas = set.replicas;
    for ordinal in (wished..set.replicas).rev() {
        let pod = Names::pod(&set.name, ordinal);
        match leave(input, consent, &set.name, ordinal, &pod, draft) {
            Ok(()) if ordinal == replicas - 1 => {
                replicas -= 1;
                draft.step("RemoveBookie", &pod, None);
            }
            Ok(()) => {}
            Err(why) => {
                draft.step("RemoveBookie", &pod, Some(why.0.clone()));
                blocked.push(Blocked(format!("{pod}: {}", why.0)));
            }
        }
    }
    replicas
}

/// The number of pods of a set that is not to get fewer. Who was retired before the wish was taken back never works again
/// (rule 10): its pod and volume still go, from the highest number down, and the number returns with an empty volume.
fn grow(input: &Input<'_>, set: &SetView, wished: i32) -> i32 {
    let spent = |ordinal: i32| {
        let claim = input.observed.claims.get(&claim_name(&set.name, ordinal));
        // What a person retired is replaced by that person.
        claim.is_some_and(|c| c.draining)
            && identity(input, &Names::pod(&set.name, ordinal), claim)
                .is_some_and(|uuid| volumes::retired(input, &uuid))
    };
    let mut replicas = set.replicas;
    while replicas > 0 && spent(replicas - 1) {
        replicas -= 1;
    }
    if replicas < set.replicas {
        return replicas;
    }
    (replicas..wished).find(|ordinal| spent(*ordinal)).unwrap_or(wished)
}

/// Whether the pod may go: its uuid is retired, or it never had one that the quorum knows and its claim is not there.
fn leave(
    input: &Input<'_>,
    consent: &Consent,
    set: &str,
    ordinal: i32,
    pod: &str,
    draft: &mut Draft,
) -> Result<(), Blocked> {
    let claim = input.observed.claims.get(&claim_name(set, ordinal));
    let Some(uuid) = identity(input, pod, claim) else {
        return match (claim, input.observed.quorum.as_ref()) {
            // No volume, and the quorum answers that it has never heard of this pod.
            (None, Some(Ok(q))) if !q.members.iter().any(|m| m.name == pod) => Ok(()),
            _ => Err(Blocked("the identity of its volume is not known yet".to_owned())),
        };
    };
    let state = volumes::state(input, &uuid);
    if state == Some("retired") {
        return Ok(());
    }
    if let Some(waits) = &consent.waits_for {
        return Err(Blocked(format!("waits for {waits}")));
    }
    match state {
        None => Err(Blocked(format!("no answer from the quorum about {uuid}"))),
        Some("draining") => {
            draft.actions.push(Action::Retire { uuid: uuid.clone(), pod: pod.to_owned() });
            Err(Blocked(needed(input, &uuid, "draining: its data is being copied to other bookies")))
        }
        Some("lost") => {
            draft.actions.push(Action::Retire { uuid: uuid.clone(), pod: pod.to_owned() });
            Err(Blocked(needed(input, &uuid, "lost: its data is being copied from other bookies")))
        }
        Some(state) => {
            let claim = claim_name(set, ordinal);
            draft.actions.push(Action::Drain { uuid: uuid.clone(), pod: pod.to_owned(), claim });
            Err(Blocked(format!("{uuid} is {state} and is to be drained")))
        }
    }
}

/// What is going on, with what still needs the bookie.
fn needed(input: &Input<'_>, uuid: &str, what: &str) -> String {
    match input.observed.needs.get(uuid) {
        Some(needs) => format!("{uuid} is {what}; {needs}"),
        None => format!("{uuid} is {what}"),
    }
}

/// The uuid on the volume: as the bookie says, else as noted on the claim. Never by the pod's number.
fn identity(input: &Input<'_>, pod: &str, claim: Option<&ClaimView>) -> Option<String> {
    let said = input.observed.bookies.get(pod).and_then(|b| b.as_ref().ok());
    said.filter(|b| b.cluster.is_some()).map(|b| b.uuid.clone()).or_else(|| claim?.uuid.clone())
}

/// Claims beyond the set's pods whose uuid is retired.
fn leftovers(input: &Input<'_>, set: &str, replicas: i32, draft: &mut Draft) {
    let stem = claim_name_stem(set);
    let beyond = input.observed.claims.values().filter(|c| {
        c.name.rsplit_once('-').is_some_and(|(s, _)| s == stem) && c.ordinal >= replicas && !c.deleting
    });
    for claim in beyond {
        let pod = Names::pod(set, claim.ordinal);
        let Some(uuid) = claim.uuid.as_ref().filter(|u| volumes::retired(input, u)) else { continue };
        if input.observed.pods.contains_key(&pod) {
            continue;
        }
        draft.step("DeleteVolume", &claim.name, None);
        draft.actions.push(Action::DeleteClaim {
            name: claim.name.clone(),
            uid: claim.uid.clone(),
            version: claim.version.clone(),
            uuid: uuid.clone(),
        });
    }
}

/// A bookie that shall stay after all.
fn undrain(input: &Input<'_>, set: &str, keep: i32, draft: &mut Draft) {
    for ordinal in 0..keep {
        let pod = Names::pod(set, ordinal);
        let claim = input.observed.claims.get(&claim_name(set, ordinal));
        let Some(uuid) = identity(input, &pod, claim) else { continue };
        // Only what this operator asked for: a person's drain is noted on the claim of the bookie otherwise.
        if claim.is_some_and(|c| c.draining) && volumes::state(input, &uuid) == Some("draining") {
            draft.actions.push(Action::Undrain { uuid, pod, claim: claim_name(set, ordinal) });
        }
    }
}
