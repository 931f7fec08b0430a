//! Finalizer and deletion of a Cluster.

use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    runtime::controller::Action,
};
use serde_json::json;
use tidemill_crd::{Cluster, cluster::WhenDeleted};

use crate::{
    apply::Site,
    context::Context,
    controller::PassError,
    names::{FINALIZER_VOLUMES, Names},
    observe::observe_kubernetes,
    plan,
};

/// Sets or takes away the finalizer, which is there only while volumes are to go with the Cluster. True when it was changed.
pub(super) async fn align(context: &Context, cluster: &Cluster, names: &Names) -> Result<bool, PassError> {
    let wished = cluster.spec.storage_policy.when_deleted == WhenDeleted::Delete;
    if wished == cluster.finalizers().iter().any(|f| f == FINALIZER_VOLUMES) {
        return Ok(false);
    }
    set(context, cluster, names, wished).await?;
    Ok(true)
}

/// The delete branch (rule 1): runs before any question about the cluster's health.
pub(super) async fn delete(context: &Context, cluster: &Cluster, names: &Names) -> Result<Action, PassError> {
    let uid = cluster.uid().unwrap_or_default();
    if !cluster.finalizers().iter().any(|f| f == FINALIZER_VOLUMES) {
        context.forget(&uid);
        return Ok(Action::await_change());
    }
    let observed = observe_kubernetes(&context.client, &names.namespace, &names.cluster)
        .await
        .map_err(PassError::kube("reading children"))?;
    let deletion = plan::deletion(cluster, &observed);
    let link = context.connection(cluster).link;
    let site = Site { client: &context.client, names, link: &link, observed: &observed };
    let outcome = site.run(deletion.actions).await;
    if let Some(error) = outcome.errors.first() {
        return Err(PassError::Actions(error.to_string()));
    }
    if deletion.release {
        set(context, cluster, names, false).await?;
    }
    context.forget(&uid);
    Ok(Action::await_change())
}

/// By resourceVersion, so that finalizers of others are never lost.
async fn set(context: &Context, cluster: &Cluster, names: &Names, wished: bool) -> Result<(), PassError> {
    let mut finalizers: Vec<String> =
        cluster.finalizers().iter().filter(|f| *f != FINALIZER_VOLUMES).cloned().collect();
    if wished {
        finalizers.push(FINALIZER_VOLUMES.to_owned());
    }
    let patch =
        json!({"metadata": {"finalizers": finalizers, "resourceVersion": cluster.resource_version()}});
    let api: Api<Cluster> = Api::namespaced(context.client.clone(), &names.namespace);
    match api.patch(&names.cluster, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(s)) if s.code == 404 => Ok(()),
        Err(e) => Err(PassError::kube("changing the finalizer")(e)),
    }
}
