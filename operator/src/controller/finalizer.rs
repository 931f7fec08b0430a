//! Finalizers.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::PassError;
use crate::context::Context;

/// Whether an object has a finalizer.
pub(super) fn has(object: &impl ResourceExt, finalizer: &str) -> bool {
    object.finalizers().iter().any(|f| f == finalizer)
}

/// Sets or takes away a finalizer, by resourceVersion, so that those of others are never lost. An object that is gone, or that
/// is another one by now, needs none.
pub(super) async fn set<K>(
    context: &Context,
    object: &K,
    finalizer: &str,
    wished: bool,
) -> Result<(), PassError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let mut all: Vec<String> = object.finalizers().iter().filter(|f| *f != finalizer).cloned().collect();
    if wished {
        all.push(finalizer.to_owned());
    }
    let patch = json!({"metadata": {"finalizers": all, "resourceVersion": object.resource_version()}});
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<K> = Api::namespaced(context.client.clone(), &namespace);
    match api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(s)) if s.code == 404 => Ok(()),
        // Changed meanwhile: the newer object comes as an event.
        Err(kube::Error::Api(s)) if s.code == 409 && wished => Ok(()),
        Err(e) => Err(PassError::kube("changing the finalizer")(e)),
    }
}
