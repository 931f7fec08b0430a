//! Volumes: the uuid that each carries is noted, and they grow (rules 9, 10).

use tidemill_crd::{Quantity, cluster::Storage};

use super::{Action, Draft, Input};
use crate::{names::Role, render::claim_name};

pub(super) fn plan(input: &Input<'_>, draft: &mut Draft) {
    let mut trouble = Vec::new();
    let mut growing = Vec::new();
    note(input, draft, &mut trouble);
    replaced(input, &mut trouble);
    let spec = &input.cluster.spec;
    grow(input, Role::Meta, None, &spec.meta.storage, draft, &mut growing, &mut trouble);
    for pool in &spec.bookie_pools {
        grow(input, Role::Bookie, Some(&pool.name), &pool.storage, draft, &mut growing, &mut trouble);
    }
    for claim in input.observed.claims.values().filter(|c| c.lost) {
        trouble.push(("VolumeLost", format!("the volume of {} is gone", claim.name)));
    }
    if let Some((reason, why)) = trouble.first() {
        draft.say("StorageReady", false, reason, why.clone());
    } else if let Some(why) = growing.first() {
        draft.say("StorageReady", false, "Growing", why.clone());
    } else {
        draft.say("StorageReady", true, "VolumesReady", "all volumes are as the spec says");
    }
}

/// Notes uuids on claims. A claim whose volume carries another uuid than noted was swapped by hand: nothing is noted over
/// it unless the old one is retired, because the note is what a deletion stands on.
fn note(input: &Input<'_>, draft: &mut Draft, trouble: &mut Vec<(&'static str, String)>) {
    let seen = input.observed.bookies.iter().filter_map(|(pod, b)| Some((pod, b.as_ref().ok()?)));
    // Before the cookie is written the uuid may still change with the next start.
    for (pod, bookie) in seen.filter(|(_, b)| b.cluster.is_some()) {
        let Some(claim) = input.observed.claims.get(&format!("{}-{pod}", crate::render::CLAIM)) else {
            continue;
        };
        match &claim.uuid {
            Some(noted) if *noted == bookie.uuid => {}
            Some(noted) if !retired(input, noted) => trouble.push((
                "VolumeChanged",
                format!(
                    "{}: its volume was {noted} and is {} now: bring the right volume back, or declare {noted} lost, see docs/ops/kubernetes/replace-a-disk.md",
                    claim.name, bookie.uuid
                ),
            )),
            _ => draft.actions.push(Action::NoteUuid { claim: claim.name.clone(), uuid: bookie.uuid.clone() }),
        }
    }
    let set = input.names.set(Role::Meta, None);
    for (pod, meta) in input.observed.metas.iter().filter_map(|(pod, m)| Some((pod, m.as_ref().ok()?))) {
        let Some(ordinal) = crate::names::ordinal(pod) else { continue };
        let Some(claim) = input.observed.claims.get(&claim_name(&set, ordinal)) else { continue };
        if meta.cluster.is_some() && claim.uuid.as_deref() != Some(meta.member.as_str()) {
            draft.actions.push(Action::NoteUuid { claim: claim.name.clone(), uuid: meta.member.clone() });
        }
    }
}

/// Volumes that went away without a word: the quorum still counts on a bookie whose pod carries another uuid now. A uuid
/// that some other pod carries is not gone, only not registered anew yet.
fn replaced(input: &Input<'_>, trouble: &mut Vec<(&'static str, String)>) {
    let Some(Ok(quorum)) = &input.observed.quorum else { return };
    let bookies = || input.observed.bookies.iter().filter_map(|(pod, b)| Some((pod, b.as_ref().ok()?)));
    let gone = quorum.members.iter().filter(|m| {
        m.role == Role::Bookie.name() && m.state != "retired" && bookies().all(|(_, b)| b.uuid != m.uuid)
    });
    for member in gone {
        // Before the cookie is written the uuid may still change with the next start.
        let Some((_, new)) = bookies().find(|(pod, b)| **pod == member.name && b.cluster.is_some()) else {
            continue;
        };
        let next = if member.state == "lost" {
            "its data is being copied from the others; then retire it"
        } else {
            "bring the right volume back, or declare it lost"
        };
        trouble.push((
            "VolumeReplaced",
            format!(
                "{}: its volume was {} and is {} now: {next}, see docs/ops/kubernetes/replace-a-disk.md",
                member.name, member.uuid, new.uuid
            ),
        ));
    }
}

/// Whether the quorum says so; no answer is no (rule 10).
pub(super) fn retired(input: &Input<'_>, uuid: &str) -> bool {
    state(input, uuid) == Some("retired")
}

/// State of a uuid as the quorum knows it.
pub(super) fn state<'a>(input: &Input<'a>, uuid: &str) -> Option<&'a str> {
    match &input.observed.quorum {
        Some(Ok(q)) => q.members.iter().find(|m| m.uuid == uuid).map(|m| m.state.as_str()),
        _ => None,
    }
}

fn grow(
    input: &Input<'_>,
    role: Role,
    pool: Option<&str>,
    storage: &Storage,
    draft: &mut Draft,
    growing: &mut Vec<String>,
    trouble: &mut Vec<(&'static str, String)>,
) {
    let Ok(wished) = storage.size.bytes() else { return };
    let bytes = |text: &Option<String>| text.as_ref().and_then(|t| Quantity::new(t).bytes().ok());
    let claims = || {
        input
            .observed
            .claims
            .values()
            .filter(move |c| c.role == Some(role) && c.pool.as_deref() == pool && !c.deleting)
    };
    for claim in claims() {
        if bytes(&claim.requested).is_some_and(|have| have < wished) {
            draft.step("GrowVolume", &claim.name, None);
            draft.actions.push(Action::GrowClaim { claim: claim.name.clone(), size: storage.size.0.clone() });
            growing.push(format!("{} grows to {}", claim.name, storage.size));
        } else if claim.bound
            && bytes(&claim.capacity).is_some_and(|have| have < bytes(&claim.requested).unwrap_or(0))
        {
            growing.push(format!("{}: waiting for the storage system to grow it", claim.name));
        }
    }
    let name = input.names.set(role, pool);
    let Some(set) = input.observed.sets.get(&name).filter(|s| !s.deleting) else { return };
    let Some(have) = bytes(&set.storage) else { return };
    if have > wished {
        // The CRD refuses it; an older object may still say so.
        trouble.push((
            "ImmutableField",
            format!(
                "{name}: spec.storage.size was {} and cannot shrink",
                set.storage.clone().unwrap_or_default()
            ),
        ));
    } else if have < wished && claims().all(|c| bytes(&c.requested).is_some_and(|r| r >= wished)) {
        // The claim template is immutable: the set is made anew, its pods stay (rule 9).
        draft.step("RecreateSet", &name, None);
        growing.push(format!("{name} is made anew with larger volumes; its pods stay"));
        draft.actions.push(Action::OrphanSet { name, uid: set.uid.clone(), version: set.version.clone() });
    } else if have < wished {
        // Applying it now would be refused for ever.
        draft.actions.push(Action::HoldSet { name });
    }
}
