//! Writing a status.

use std::fmt::Debug;

use k8s_openapi::{NamespaceResourceScope, jiff::Timestamp};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::events::EventType,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tidemill_crd::{Condition, Outcome, Verdict, find, is_true};

use super::{PassError, events};
use crate::{context::Context, metrics::KindLabel};

/// Field manager of status.
const MANAGER: &str = "tidemill-operator-status";

/// Writes a status that changed and returns the resourceVersion of what was written; `None` when the object is gone.
pub(super) async fn write<K>(
    context: &Context,
    kind: &'static str,
    object: &K,
    status: impl Serialize,
) -> Result<Option<String>, PassError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
    let body = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {"name": name, "namespace": namespace, "uid": object.uid()},
        "status": status,
    });
    let api: Api<K> = Api::namespaced(context.client.clone(), &namespace);
    match api.patch_status(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&body)).await {
        Ok(written) => {
            context.metrics.status_writes.get_or_create(&KindLabel { kind }).inc();
            Ok(written.resource_version())
        }
        // Deleted meanwhile, or another object of the same name.
        Err(kube::Error::Api(s)) if s.code == 404 || s.code == 409 => Ok(None),
        Err(e) => Err(PassError::kube("writing the status")(e)),
    }
}

/// What follows a status that was written: the time to the first Ready, and an Event for a rejection that is news.
pub(super) async fn tell<K>(
    context: &Context,
    kind: &'static str,
    object: &K,
    (old, new): (&[Condition], &[Condition]),
    verdict: &Verdict,
) where
    K: Resource<DynamicType = ()>,
{
    if is_true(new, "Ready")
        && !is_true(old, "Ready")
        && let Some(created) = &object.meta().creation_timestamp
    {
        let seconds = Timestamp::now().duration_since(created.0).as_secs_f64();
        context.metrics.time_to_ready.get_or_create(&KindLabel { kind }).observe(seconds.max(0.0));
    }
    let reason = |list: &[Condition]| find(list, "Ready").map(|c| c.reason.clone());
    if verdict.outcome == Outcome::Rejected && reason(new) != reason(old) {
        let about = object.object_ref(&());
        let (why, what) = (&verdict.reason, &verdict.message);
        events::publish(context, &about, EventType::Warning, why, "Reconcile", what).await;
    }
}
