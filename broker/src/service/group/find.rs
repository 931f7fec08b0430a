//! `FindCoordinator`.

use std::{sync::Arc, time::Duration};

use tidemill_proto::v1;

use crate::{
    convert::topic::live_owner,
    core::Core,
    deadline::Deadline,
    fault::{Fault, address},
    groups::{group_name, offsets_topic, partition_of},
    route::name_of,
};

/// Longest wait for an owner when the caller set no earlier deadline.
const WAIT: Duration = Duration::from_secs(5);

pub(super) async fn find(
    core: &Arc<Core>,
    r: v1::FindCoordinatorRequest,
    deadline: Deadline,
) -> Result<v1::FindCoordinatorResponse, Fault> {
    let group = group_name(&r.group)?;
    let deadline = deadline.at_most(WAIT);
    let topic = offsets_topic(core, deadline).await?;
    let id = partition_of(&topic, &group);
    let mut view = core.mirror.changed();
    loop {
        view.mark_unchanged();
        {
            let table = core.mirror.table();
            if let Some(p) = table.partition(id)
                && let Some(m) = live_owner(p, &table)
            {
                return Ok(v1::FindCoordinatorResponse {
                    address: address(&m.endpoint),
                    name: m.name.clone(),
                    partition: id.index,
                    epoch: p.epoch.0,
                });
            }
        }
        if !matches!(deadline.bound(view.changed()).await, Ok(Ok(()))) {
            return Err(Fault::no_owner(&name_of(&topic, id)));
        }
    }
}
