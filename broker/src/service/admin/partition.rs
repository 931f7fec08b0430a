//! `DescribePartition`: the quorum's records, and what the owner knows beyond them.

use std::{sync::Arc, time::Duration};

use tidemill_partition_log::{CompactionStatus, LogState};
use tidemill_proto::v1::{self, admin_client::AdminClient};
use tidemill_runtime::net;
use tidemill_types::PartitionId;
use tonic::{Request, transport::Endpoint};

use super::{ledgers, unanswered};
use crate::{convert, core::Core, deadline::Deadline, fault::Fault, ownership::Held};

/// Set on a call from broker to broker: the asked one does not ask on.
pub(super) const ASKED: &str = "tidemill-asked";
/// What asking the owner may take.
const OWNER_WAIT: Duration = Duration::from_secs(1);

pub(in crate::service) async fn describe(
    core: &Arc<Core>,
    request: v1::DescribePartitionRequest,
    deadline: Deadline,
    may_ask_owner: bool,
) -> Result<v1::DescribePartitionResponse, Fault> {
    let topic = core.any_topic(&request.topic)?;
    let id = topic.partition(request.partition)?;
    let here = core.owned.get(id);
    if here.is_none()
        && may_ask_owner
        && let Some(owner) = owner(core, id)
        && let Some(answer) = ask(&owner, &request, deadline).await
    {
        return Ok(answer);
    }
    let view = deadline.bound(core.client.partition(id)).await.map_err(|_| Fault::deadline())?;
    let view = view.map_err(|e| unanswered("read the partition", &e))?;
    let view = view.ok_or_else(|| Fault::unknown_topic(&request.topic))?;
    let (state, high_watermark) = match &here {
        Some(Held::Log(log)) => (state(log.state()), log.high_watermark().0),
        Some(Held::Opening(_)) => ("recovering", -1),
        Some(Held::Released(_)) | None => ("none", -1),
    };
    let names = ledgers::names(core);
    let chain = view
        .ledgers
        .iter()
        .zip(&view.partition.chain)
        .map(|(r, c)| convert::ledger::to_proto(r, &topic.name, Some(c.base_offset), &names))
        .collect();
    let partition = Some(convert::topic::partition(&view.partition, &core.mirror.table()));
    Ok(v1::DescribePartitionResponse {
        partition,
        log_start: view.partition.log_start.0,
        high_watermark,
        state: state.to_owned(),
        chain,
        deleted: core.mirror.table().is_tombstone(id.topic),
        compaction: match &here {
            Some(Held::Log(log)) => log.describe().compaction.map(compaction),
            _ => None,
        },
    })
}

fn compaction(c: CompactionStatus) -> v1::Compaction {
    v1::Compaction {
        dirty_permille: c.dirty_permille.map(Into::into),
        clean_to: c.clean_to.0,
        progress_percent: c.progress_percent.map(Into::into),
        passes: c.passes,
        failed: c.failed,
    }
}

fn state(s: LogState) -> &'static str {
    match s {
        LogState::Recovering => "recovering",
        LogState::Serving => "serving",
        LogState::Releasing | LogState::Closed => "closed",
        LogState::Dropped => "none",
    }
}

/// Address of the live owner, when that is another broker.
pub(super) fn owner(core: &Core, id: PartitionId) -> Option<String> {
    let table = core.mirror.table();
    let owner = convert::topic::live_owner(table.partition(id)?, &table)?;
    (owner.id != core.member).then(|| crate::fault::address(&owner.endpoint))
}

/// Asks the owner; nothing when it does not answer in time: what the quorum knows is told then.
async fn ask(
    owner: &str,
    request: &v1::DescribePartitionRequest,
    deadline: Deadline,
) -> Option<v1::DescribePartitionResponse> {
    let call = async {
        let channel = net::connect(&Endpoint::from_shared(format!("http://{owner}")).ok()?).await.ok()?;
        let mut request = Request::new(request.clone());
        request.metadata_mut().insert(ASKED, tonic::metadata::MetadataValue::from_static("1"));
        AdminClient::new(channel).describe_partition(request).await.ok().map(tonic::Response::into_inner)
    };
    deadline.at_most(OWNER_WAIT).bound(call).await.ok().flatten()
}
