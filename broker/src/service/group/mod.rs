//! `Groups`: consumer groups and committed offsets.

mod commit;
mod configure;
mod convert;
mod declare;
mod delete;
mod describe;
mod fetch;
mod find;
mod list;
mod members;
mod reset;
mod subscribe;

use std::sync::Arc;

use futures::stream::BoxStream;
use tidemill_group::{Coordinator, Now, Outcome};
use tidemill_proto::v1::{self, groups_server::Groups};
use tidemill_types::GroupName;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    core::{Core, CoreSlot},
    deadline::Deadline,
    fault::Fault,
    groups::{self, Groups as Coordinators},
    operator_epoch,
};

/// The service.
pub(crate) struct GroupService(pub(crate) CoreSlot);

macro_rules! call {
    ($self:ident, $request:ident, $operation:path) => {{
        let deadline = Deadline::of(&$request);
        let core = $self.0.get()?;
        Ok(Response::new($operation(core, $request.into_inner(), deadline).await?))
    }};
}

/// The same for what operators do: refused when another one acquired the epoch since (rule 15 of the operator).
macro_rules! under_epoch {
    ($self:ident, $request:ident, $operation:path) => {{
        let deadline = Deadline::of(&$request);
        let core = $self.0.get()?;
        operator_epoch::check(core, operator_epoch::of($request.metadata())?, deadline).await?;
        Ok(Response::new($operation(core, $request.into_inner(), deadline).await?))
    }};
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Groups for GroupService {
    async fn find_coordinator(
        &self,
        request: Request<v1::FindCoordinatorRequest>,
    ) -> Answer<v1::FindCoordinatorResponse> {
        call!(self, request, find::find)
    }

    type SubscribeStream = BoxStream<'static, Result<v1::SubscribeResponse, Status>>;

    async fn subscribe(
        &self,
        request: Request<Streaming<v1::SubscribeRequest>>,
    ) -> Answer<Self::SubscribeStream> {
        let core = self.0.get()?.clone();
        let peer = request.remote_addr().map(|a| a.to_string()).unwrap_or_default();
        Ok(Response::new(subscribe::run(core, request.into_inner(), peer)))
    }

    async fn join_group(&self, request: Request<v1::JoinGroupRequest>) -> Answer<v1::GroupAssignment> {
        let peer = request.remote_addr().map(|a| a.to_string()).unwrap_or_default();
        let deadline = Deadline::of(&request);
        let core = self.0.get()?;
        Ok(Response::new(members::join(core, request.into_inner(), &peer, deadline).await?))
    }

    async fn heartbeat(&self, request: Request<v1::HeartbeatRequest>) -> Answer<v1::GroupAssignment> {
        call!(self, request, members::heartbeat)
    }

    async fn leave_group(&self, request: Request<v1::LeaveGroupRequest>) -> Answer<v1::LeaveGroupResponse> {
        call!(self, request, members::leave)
    }

    async fn commit_offsets(
        &self,
        request: Request<v1::CommitOffsetsRequest>,
    ) -> Answer<v1::CommitOffsetsResponse> {
        call!(self, request, commit::commit)
    }

    async fn fetch_offsets(
        &self,
        request: Request<v1::FetchOffsetsRequest>,
    ) -> Answer<v1::FetchOffsetsResponse> {
        call!(self, request, fetch::fetch)
    }

    async fn list_groups(&self, request: Request<v1::ListGroupsRequest>) -> Answer<v1::ListGroupsResponse> {
        let may_ask_others = request.metadata().get(list::ASKED).is_none();
        let deadline = Deadline::of(&request);
        let core = self.0.get()?;
        Ok(Response::new(list::list(core, deadline, may_ask_others).await?))
    }

    async fn describe_group(
        &self,
        request: Request<v1::DescribeGroupRequest>,
    ) -> Answer<v1::DescribeGroupResponse> {
        call!(self, request, describe::describe)
    }

    async fn reset_offsets(
        &self,
        request: Request<v1::ResetOffsetsRequest>,
    ) -> Answer<v1::ResetOffsetsResponse> {
        under_epoch!(self, request, reset::reset)
    }

    async fn delete_group(
        &self,
        request: Request<v1::DeleteGroupRequest>,
    ) -> Answer<v1::DeleteGroupResponse> {
        under_epoch!(self, request, delete::delete)
    }

    async fn configure_group(
        &self,
        request: Request<v1::ConfigureGroupRequest>,
    ) -> Answer<v1::ConfigureGroupResponse> {
        under_epoch!(self, request, configure::configure)
    }

    async fn get_group_config(
        &self,
        request: Request<v1::GetGroupConfigRequest>,
    ) -> Answer<v1::GetGroupConfigResponse> {
        call!(self, request, configure::get)
    }

    async fn declare_group(
        &self,
        request: Request<v1::DeclareGroupRequest>,
    ) -> Answer<v1::DeclareGroupResponse> {
        under_epoch!(self, request, declare::declare)
    }

    async fn release_group(
        &self,
        request: Request<v1::ReleaseGroupRequest>,
    ) -> Answer<v1::ReleaseGroupResponse> {
        under_epoch!(self, request, declare::release)
    }
}

/// Runs an operation at the group's coordinator, which has to be this broker.
async fn run<T: Send + 'static>(
    core: &Arc<Core>,
    group: &GroupName,
    deadline: Deadline,
    op: impl FnOnce(&mut Coordinator, Now) -> Outcome<T> + Send + 'static,
) -> Result<T, Fault> {
    let handle = Coordinators::coordinator(core, group, deadline).await?;
    handle.run(deadline, op).await?.map_err(|e| groups::refused(group, &e))
}
