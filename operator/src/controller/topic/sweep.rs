//! Frees claims whose objects are gone without a word: a Topic with `Retain` has no finalizer (rule 8). Data is not touched.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use kube::{ResourceExt, api::ListParams, runtime::reflector::Store};
use tidemill_client::v1;
use tidemill_crd::{Cluster, Topic};

use crate::{
    context::Context,
    controller::{cluster::scoped, jittered},
};

/// Between two passes; a claim is freed when its uid was absent in two.
const PASS: Duration = Duration::from_secs(120);
/// Objects and topics read at once.
const PAGE: u32 = 1_000;

/// Passes for ever.
pub(super) async fn run(context: Arc<Context>, clusters: Store<Cluster>) {
    let mut missing: HashMap<String, HashSet<String>> = HashMap::new();
    loop {
        tokio::time::sleep(jittered(PASS)).await;
        let Some(present) = uids(&context).await else { continue };
        for cluster in clusters.state() {
            let (Some(uid), Some(status)) = (cluster.uid(), &cluster.status) else { continue };
            if status.cluster_id.is_none() || cluster.metadata.deletion_timestamp.is_some() {
                missing.remove(&uid);
                continue;
            }
            let before = missing.remove(&uid).unwrap_or_default();
            let Some(orphans) = orphans(&context, &cluster, &present).await else { continue };
            let (again, first): (Vec<_>, Vec<_>) =
                orphans.into_iter().partition(|c| before.contains(&c.claim_uid));
            missing.insert(uid, first.iter().map(|c| c.claim_uid.clone()).collect());
            release(&context, &cluster, again).await;
        }
    }
}

/// uids of all Topics that are watched, from a complete list; `None` when it was not complete.
async fn uids(context: &Context) -> Option<HashSet<String>> {
    let api = scoped::<Topic>(context);
    let mut out = HashSet::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list_metadata(&params).await.ok()?;
        out.extend(page.items.iter().filter_map(ResourceExt::uid));
        match page.metadata.continue_.filter(|c| !c.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Some(out),
        }
    }
}

/// Claims of watched namespaces whose objects are not there; `None` without a complete list.
async fn orphans(
    context: &Context,
    cluster: &Cluster,
    present: &HashSet<String>,
) -> Option<Vec<v1::ClaimRelease>> {
    let control = context.connection(cluster).link.control().await.ok()?;
    let (mut out, mut after) = (Vec::new(), 0);
    loop {
        let r = v1::ListTopicsRequest { after, limit: PAGE, claimed_only: true, ..Default::default() };
        let page = control.list_topics(r).await.ok()?;
        for topic in page.topics {
            let Some(claim) = topic.claim else { continue };
            let Some((namespace, _)) = claim.owner.strip_prefix("Topic ").and_then(|o| o.split_once('/'))
            else {
                continue;
            };
            let watched = context.settings.namespace.as_deref().is_none_or(|n| n == namespace);
            if watched && !present.contains(&claim.uid) {
                out.push(v1::ClaimRelease { name: topic.name, claim_uid: claim.uid });
            }
        }
        if page.next_after == 0 {
            return Some(out);
        }
        after = page.next_after;
    }
}

async fn release(context: &Context, cluster: &Cluster, mut claims: Vec<v1::ClaimRelease>) {
    if claims.is_empty() {
        return;
    }
    let Ok(control) = context.connection(cluster).link.control().await else { return };
    while !claims.is_empty() {
        let rest = claims.split_off(claims.len().min(PAGE as usize));
        let names: Vec<String> = claims.iter().map(|c| c.name.clone()).collect();
        match control.release_claims(v1::ReleaseClaimsRequest { claims }).await {
            Ok(_) => tracing::info!(
                cluster = cluster.name_any(),
                topics = names.join(","),
                "claims were freed: their Topics are gone"
            ),
            Err(e) => tracing::debug!(error = %e, "claims were not freed"),
        }
        claims = rest;
    }
}
