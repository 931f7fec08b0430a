//! `DescribeBookie`.

use std::sync::Arc;

use tidemill_proto::v1;

use super::{by_uuid_or_name, needs};
use crate::{core::Core, deadline::Deadline, fault::Fault};

pub(in super::super) async fn describe(
    core: &Arc<Core>,
    request: v1::DescribeBookieRequest,
    deadline: Deadline,
) -> Result<v1::DescribeBookieResponse, Fault> {
    let bookie = by_uuid_or_name(core, &request.bookie, deadline).await?;
    Ok(v1::DescribeBookieResponse { bookie: Some(needs::of(core, &bookie, deadline).await?) })
}
