//! `delete`: tombstones; the records stay until they are purged, and applying again brings them back.

use std::time::Duration;

use tidemill_client::{Client, v1};
use tidemill_crd::{
    Outcome, plan,
    wire::{self, topic::Request},
};
use tidemill_types::ErrorCode;

use super::{
    Kind, apply, groups, observe,
    read::Manifest,
    show,
    topics::{self, Done},
};
use crate::{
    commands::connect::failed,
    error::{CliError, Exit},
    output,
};

/// Deletions of one call.
const BATCH: usize = 1_000;

/// What stands in manifests, by their own policies.
pub(super) async fn manifests(client: &Client, all: &[Manifest], dry_run: bool) -> Result<(), CliError> {
    let seen = observe::named(client, topics::names(all)).await?;
    let mut deletions = Vec::new();
    let mut releases = Vec::new();
    let mut done: Vec<(&Manifest, Done)> = Vec::new();
    for (m, plan) in topics::plans(all, &seen, true) {
        match plan.actions.into_iter().next().map(wire::topic::request) {
            Some(Request::Delete(deletion)) => deletions.push((m, deletion)),
            Some(Request::Release(release)) => releases.push((m, release)),
            _ if plan.verdict.outcome == Outcome::Done => {
                output::note(&format!("note: {}: {}", m.full_name(), plan.verdict.message));
            }
            _ => done.push((m, Done::Refused(plan.verdict.reason, plan.verdict.message))),
        }
    }
    for some in deletions.chunks(BATCH) {
        let topics = some.iter().map(|(_, d)| d.clone()).collect();
        let request = v1::DeleteTopicsRequest { topics, dry_run };
        let answer = client.control().delete_topics(request).await.map_err(|e| failed(&e))?;
        for ((m, _), result) in some.iter().zip(answer.results) {
            if let Some(refused) = told(&m.full_name(), result, dry_run)? {
                done.push((m, refused));
            }
        }
    }
    if !dry_run {
        for some in releases.chunks(BATCH) {
            let claims = some.iter().map(|(_, r)| r.clone()).collect();
            client
                .control()
                .release_claims(v1::ReleaseClaimsRequest { claims })
                .await
                .map_err(|e| failed(&e))?;
        }
    }
    for (m, _) in &releases {
        output::print(&format!("{} deleted\n", m.full_name()))?;
        output::note("note: the topic stays, only its claim was freed (deletionPolicy Retain)");
    }
    done.extend(groups::delete(client, all, dry_run).await?);
    apply::refusals(&done)
}

/// By name, without a manifest.
pub(super) async fn named(
    client: &Client,
    kind: Kind,
    names: &[String],
    namespace: &str,
    purge_after: Duration,
    dry_run: bool,
) -> Result<(), CliError> {
    if kind == Kind::ConsumerGroup {
        return groups::let_go(client, names, namespace, dry_run).await;
    }
    let all = observe::all(client).await?;
    let purge_after_ms = i64::try_from(purge_after.as_millis()).unwrap_or(i64::MAX);
    let mut deletions = Vec::new();
    for name in names {
        let Some(topic) = all.iter().find(|t| show::is_named(t, namespace, name) && t.tombstone.is_none())
        else {
            return Err(show::not_found(kind, name));
        };
        let claim = topic.claim.clone().unwrap_or_default();
        // Somebody else's object would bring it back, or be left behind.
        if !claim.uid.is_empty() && claim.uid != plan::manifest_uid(namespace, &show::object_name(topic)) {
            let why = format!("topic {} is claimed by {}", topic.name, claim.owner);
            return Err(CliError::new(format!("{}/{name}", kind.full()), why, ErrorCode::TopicClaimed)
                .help("delete the object that claims it, or name its namespace with -n"));
        }
        deletions.push(v1::TopicDeletion {
            name: topic.name.clone(),
            claim_uid: claim.uid,
            purge_after_ms,
            policy: v1::DeletePolicy::Tombstone.into(),
        });
    }
    let request = v1::DeleteTopicsRequest { topics: deletions, dry_run };
    let answer = client.control().delete_topics(request).await.map_err(|e| failed(&e))?;
    for (name, result) in names.iter().zip(answer.results) {
        if let Some(Done::Refused(reason, message)) =
            told(&format!("{}/{name}", kind.full()), result, dry_run)?
        {
            return Err(CliError::new(format!("delete {name}: {reason}"), message, ErrorCode::Conflict)
                .exit(Exit::Conflict));
        }
    }
    Ok(())
}

/// Prints what was done; a refusal is handed back.
fn told(name: &str, result: v1::DeletionResult, dry_run: bool) -> Result<Option<Done>, CliError> {
    let suffix = if dry_run { " (dry run)" } else { "" };
    match result.done() {
        v1::DeletionDone::Refused | v1::DeletionDone::Unspecified => {
            let verdict = plan::refused(&wire::topic::deleted(&result).err().unwrap_or_default());
            return Ok(Some(Done::Refused(verdict.reason, verdict.message)));
        }
        v1::DeletionDone::NotHolder => {
            let holder = result.held_by.map_or_else(|| "nobody".to_owned(), |c| c.owner);
            output::note(&format!("note: {name}: the topic belongs to {holder} by now and is left alone"));
        }
        v1::DeletionDone::Tombstoned | v1::DeletionDone::Already | v1::DeletionDone::Absent => {
            output::print(&format!("{name} deleted{suffix}\n"))?;
            if let Some(t) = result.topic.and_then(|t| t.tombstone) {
                let at = show::time(t.purge_at_ms);
                output::note(&format!(
                    "note: its records stay until {at}; applying it again brings them back"
                ));
            }
        }
    }
    Ok(None)
}
