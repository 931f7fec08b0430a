//! `DeleteRecords`: moves the log start of a partition; done by its owner.

use std::sync::Arc;

use tidemill_partition_log::FetchError;
use tidemill_proto::v1::{self, admin_client::AdminClient};
use tidemill_runtime::net;
use tidemill_types::{ErrorCode, Offset};
use tonic::{Request, Status, transport::Endpoint};

use super::partition::{ASKED, owner};
use crate::{core::Core, deadline::Deadline, fault::Fault, route::name_of};

/// What it may take when the caller set no earlier deadline.
const WAIT: std::time::Duration = std::time::Duration::from_secs(30);

pub(super) async fn delete(
    core: &Arc<Core>,
    request: v1::DeleteRecordsRequest,
    deadline: Deadline,
    may_ask_owner: bool,
) -> Result<v1::DeleteRecordsResponse, Status> {
    let deadline = deadline.at_most(WAIT);
    let topic = core.topic(&request.topic)?;
    let id = topic.partition(request.partition)?;
    if !topic.deletes {
        let allowed = "a topic whose cleanup.policy has delete: the last record of a key stays for ever";
        return Err(Fault::field(ErrorCode::Unsupported, "topic", "cleanup.policy=compact", allowed).into());
    }
    if request.before < -1 {
        return Err(Fault::invalid(
            "before",
            request.before,
            "0 or above, or -1 for all that are acknowledged",
        )
        .into());
    }
    if core.owned.get(id).is_none()
        && may_ask_owner
        && let Some(owner) = owner(core, id)
    {
        return pass_on(&owner, request, deadline).await;
    }
    let log = core.ready_log(&topic, id, 0, deadline).await?;
    let before = if request.before == -1 { log.high_watermark() } else { Offset(request.before) };
    let moved = deadline.bound(log.delete_records(before)).await.map_err(|_| Fault::deadline_unknown())?;
    let log_start = moved.map_err(|e| match e {
        FetchError::NotOwner => core.not_here(&topic, id),
        FetchError::OutOfRange { log_start, high_watermark, .. } => {
            let allowed = format!("-1, or 0 to {high_watermark}, the end of {}", name_of(&topic, id));
            let why = format!("{before} is given");
            Fault::field(ErrorCode::OffsetOutOfRange, "before", &why, &allowed)
                .with_log(log_start, high_watermark)
        }
        e => Fault::new(e.code(), format!("delete records of {}: {e}", name_of(&topic, id))),
    })?;
    Ok(v1::DeleteRecordsResponse { log_start: log_start.0, high_watermark: log.high_watermark().0 })
}

async fn pass_on(
    owner: &str,
    request: v1::DeleteRecordsRequest,
    deadline: Deadline,
) -> Result<v1::DeleteRecordsResponse, Status> {
    let unreachable = |e: &dyn std::fmt::Display| {
        Fault::new(ErrorCode::NoOwner, format!("the owner at {owner} cannot be reached: {e}"))
    };
    let call = async {
        let endpoint = Endpoint::from_shared(format!("http://{owner}")).map_err(|e| unreachable(&e))?;
        let channel = net::connect(&endpoint).await.map_err(|e| unreachable(&e))?;
        let mut request = Request::new(request);
        request.metadata_mut().insert(ASKED, tonic::metadata::MetadataValue::from_static("1"));
        AdminClient::new(channel).delete_records(request).await.map(tonic::Response::into_inner)
    };
    deadline.bound(call).await.map_err(|_| Status::from(Fault::deadline_unknown()))?
}
