//! `Admin`: changing and inspecting a cluster; any broker answers.

mod alter;
mod bookie;
mod create;
mod delete;
mod delete_records;
mod force_close;
mod ledgers;
pub(super) mod partition;
mod status;

use tidemill_meta_client::MetaError;
use tidemill_proto::v1::{self, admin_server::Admin};
use tidemill_types::{
    TopicName, TopicRecord,
    meta::{Answer, Command, Query, Reply},
};
use tonic::{Request, Response, Status};

use crate::{
    core::{Core, CoreSlot},
    deadline::Deadline,
    fault::{Fault, rejected},
    operator_epoch,
};

/// The service.
pub(crate) struct AdminService(pub(crate) CoreSlot);

/// How long an answer is held back for its effect to be seen (owners of new partitions, the own view), when the caller set
/// no earlier deadline.
const EFFECT_WAIT: std::time::Duration = std::time::Duration::from_secs(10);

macro_rules! call {
    ($self:ident, $request:ident, $operation:path $(, $more:expr)?) => {{
        let deadline = Deadline::of(&$request);
        let core = $self.0.get()?;
        operator_epoch::check(core, operator_epoch::of($request.metadata())?, deadline).await?;
        Ok(Response::new($operation(core, $request.into_inner(), deadline $(, $more)?).await?))
    }};
}

#[tonic::async_trait]
impl Admin for AdminService {
    async fn create_topic(
        &self,
        request: Request<v1::CreateTopicRequest>,
    ) -> Result<Response<v1::CreateTopicResponse>, Status> {
        call!(self, request, create::create)
    }

    async fn alter_topic(
        &self,
        request: Request<v1::AlterTopicRequest>,
    ) -> Result<Response<v1::AlterTopicResponse>, Status> {
        call!(self, request, alter::alter)
    }

    async fn delete_topic(
        &self,
        request: Request<v1::DeleteTopicRequest>,
    ) -> Result<Response<v1::DeleteTopicResponse>, Status> {
        call!(self, request, delete::delete)
    }

    async fn cluster_status(
        &self,
        request: Request<v1::ClusterStatusRequest>,
    ) -> Result<Response<v1::ClusterStatusResponse>, Status> {
        call!(self, request, status::status)
    }

    async fn list_ledgers(
        &self,
        request: Request<v1::ListLedgersRequest>,
    ) -> Result<Response<v1::ListLedgersResponse>, Status> {
        call!(self, request, ledgers::list)
    }

    async fn describe_partition(
        &self,
        request: Request<v1::DescribePartitionRequest>,
    ) -> Result<Response<v1::DescribePartitionResponse>, Status> {
        let may_ask_owner = request.metadata().get(partition::ASKED).is_none();
        call!(self, request, partition::describe, may_ask_owner)
    }

    async fn delete_records(
        &self,
        request: Request<v1::DeleteRecordsRequest>,
    ) -> Result<Response<v1::DeleteRecordsResponse>, Status> {
        let may_ask_owner = request.metadata().get(partition::ASKED).is_none();
        call!(self, request, delete_records::delete, may_ask_owner)
    }

    async fn drain_bookie(
        &self,
        request: Request<v1::DrainBookieRequest>,
    ) -> Result<Response<v1::DrainBookieResponse>, Status> {
        call!(self, request, bookie::drain)
    }

    async fn mark_bookie_lost(
        &self,
        request: Request<v1::MarkBookieLostRequest>,
    ) -> Result<Response<v1::MarkBookieLostResponse>, Status> {
        call!(self, request, bookie::mark_lost)
    }

    async fn retire_bookie(
        &self,
        request: Request<v1::RetireBookieRequest>,
    ) -> Result<Response<v1::RetireBookieResponse>, Status> {
        call!(self, request, bookie::retire)
    }

    async fn describe_bookie(
        &self,
        request: Request<v1::DescribeBookieRequest>,
    ) -> Result<Response<v1::DescribeBookieResponse>, Status> {
        call!(self, request, bookie::describe)
    }

    async fn force_close_ledger(
        &self,
        request: Request<v1::ForceCloseLedgerRequest>,
    ) -> Result<Response<v1::ForceCloseLedgerResponse>, Status> {
        call!(self, request, force_close::force_close)
    }
}

/// No answer of the quorum, as a client hears of it.
pub(super) fn unanswered(what: &str, e: &MetaError) -> Fault {
    Fault::new(e.code(), format!("{what}: {e}"))
}

/// A linearizable read within the deadline.
async fn read(core: &Core, query: Query, deadline: Deadline) -> Result<Answer, Fault> {
    let answer = deadline.bound(core.client.read(&query)).await.map_err(|_| Fault::deadline())?;
    answer.map(|(a, _)| a).map_err(|e| unanswered("read the metadata", &e))
}

/// A topic as it is now, not as the view knows it.
async fn current_topic(
    core: &Core,
    name: &TopicName,
    deadline: Deadline,
) -> Result<Option<TopicRecord>, Fault> {
    match read(core, Query::TopicByName(name.clone()), deadline).await? {
        Answer::Topic(t) => Ok(t.filter(|t| !t.deleting)),
        _ => Err(Fault::internal("read a topic", "an answer of another kind")),
    }
}

/// A command within the deadline.
async fn propose(core: &Core, what: &str, command: Command, deadline: Deadline) -> Result<Reply, Fault> {
    let reply = deadline.bound(core.client.propose(command)).await.map_err(|_| Fault::deadline_unknown())?;
    reply.map_err(|e| unanswered(what, &e))?.map_err(|r| rejected(what, &r))
}

/// Waits until the view has what `seen` looks for, at most until `deadline`; false when the wait ended.
pub(super) async fn until(core: &Core, deadline: Deadline, seen: impl Fn(&Core) -> bool) -> bool {
    let mut view = core.mirror.changed();
    let mut owned = core.owned.subscribe();
    let wait = async {
        loop {
            view.mark_unchanged();
            owned.mark_unchanged();
            if seen(core) {
                return true;
            }
            tokio::select! {
                r = view.changed() => if r.is_err() { return false },
                r = owned.changed() => if r.is_err() { return false },
                () = core.stopping.cancelled() => return false,
            }
        }
    };
    deadline.bound(wait).await.unwrap_or(false)
}
