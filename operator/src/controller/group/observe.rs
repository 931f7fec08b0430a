//! What the Cluster has of a group.

use kube::{Api, ResourceExt, runtime::reflector::ObjectRef};
use tidemill_client::{ClientError, ErrorCode, Groups};
use tidemill_crd::{ConsumerGroup, plan::GroupSeen, wire};

use super::Shared;
use crate::controller::PassError;

/// A group; `None`: nobody knows it.
pub(super) async fn observe(groups: Groups, name: String) -> Result<Option<GroupSeen>, ClientError> {
    let described = match groups.describe(&name).await {
        Ok(described) => described,
        Err(e) if e.code == Some(ErrorCode::UnknownGroup) => return Ok(None),
        Err(e) => return Err(e),
    };
    let config = groups.config(&name).await?.map(|(config, _)| config);
    Ok(Some(wire::group::seen(&described, config.as_ref())))
}

/// Whether the object that holds the claim is gone (rule 8: one with `Retain` has no finalizer and goes without a word). Only
/// what is watched can be known to be gone.
pub(super) async fn holder_gone(
    shared: &Shared,
    group: &ConsumerGroup,
    owner: &str,
) -> Result<bool, PassError> {
    let Some((namespace, name)) = owner.strip_prefix("ConsumerGroup ").and_then(|o| o.split_once('/')) else {
        return Ok(false);
    };
    let watched = shared.context.settings.namespace.as_deref().is_none_or(|n| n == namespace);
    if !watched || shared.groups.get(&ObjectRef::new(name).within(namespace)).is_some_and(|h| same(&h, group))
    {
        return Ok(false);
    }
    // The store may be behind; "gone" has to be true.
    let api = Api::<ConsumerGroup>::namespaced(shared.context.client.clone(), namespace);
    let holder = api.get_opt(name).await.map_err(PassError::kube("reading the holder of a claim"))?;
    Ok(!holder.is_some_and(|h| same(&h, group)))
}

/// Whether both name one group of one Cluster.
fn same(a: &ConsumerGroup, b: &ConsumerGroup) -> bool {
    let cluster = |g: &ConsumerGroup| {
        (g.spec.cluster_ref.name.clone(), g.spec.cluster_ref.namespace.clone().or_else(|| g.namespace()))
    };
    a.group_name() == b.group_name() && cluster(a) == cluster(b)
}
