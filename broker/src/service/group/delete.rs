//! `DeleteGroup`.

use std::sync::Arc;

use tidemill_proto::v1;

use super::run;
use crate::{core::Core, deadline::Deadline, fault::Fault, groups::group_name};

pub(super) async fn delete(
    core: &Arc<Core>,
    r: v1::DeleteGroupRequest,
    deadline: Deadline,
) -> Result<v1::DeleteGroupResponse, Fault> {
    let group = group_name(&r.group)?;
    let name = group.clone();
    run(core, &group, deadline, move |c, _| c.delete(&name)).await?;
    Ok(v1::DeleteGroupResponse {})
}
