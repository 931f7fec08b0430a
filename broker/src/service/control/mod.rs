//! `Control`: declared wishes of operators and of `tidemill apply`; any broker answers. One operation per file.

mod apply;
mod check_member;
mod claims;
mod delete;
mod differences;
mod empty;
mod epoch;
mod feature;
mod list;
mod purge;
mod quorum;
mod restart;
mod topic;
mod watch;

use std::pin::Pin;

use tidemill_proto::v1::{self, control_server::Control};
use tidemill_types::{
    Revision,
    meta::{ControlAction, ControlAnswer, ControlQuery, ControlReply},
};
use tonic::{Request, Response, Status};

use super::admin::unanswered;
use crate::{
    core::{Core, CoreSlot},
    deadline::Deadline,
    fault::{Fault, rejected},
    operator_epoch,
};

/// The service.
pub(crate) struct ControlService(pub(crate) CoreSlot);

type Events = Pin<Box<dyn futures::Stream<Item = Result<v1::TopicEvent, Status>> + Send>>;

/// Elements of one call.
const MAX_ELEMENTS: usize = tidemill_types::meta::MAX_BATCH;

/// What every operation knows of its call.
#[derive(Clone, Copy)]
struct Caller<'a> {
    core: &'a std::sync::Arc<Core>,
    epoch: Option<u64>,
    deadline: Deadline,
}

impl Caller<'_> {
    /// A command under the caller's epoch, within its deadline.
    async fn command(&self, what: &str, action: ControlAction) -> Result<ControlReply, Fault> {
        let sent = self.core.client.control(operator_epoch::under(self.epoch, action));
        let reply = self.deadline.bound(sent).await.map_err(|_| Fault::deadline_unknown())?;
        reply.map_err(|e| unanswered(what, &e))?.map_err(|r| rejected(what, &r))
    }

    /// What the command would answer now.
    async fn attempt(&self, what: &str, action: ControlAction) -> Result<ControlReply, Fault> {
        let command = Box::new(operator_epoch::under(self.epoch, action));
        match self.query(what, ControlQuery::Try(command)).await? {
            (ControlAnswer::Tried(reply), _) => reply.map_err(|r| rejected(what, &r)),
            _ => Err(other(what)),
        }
    }

    /// A linearizable read within the deadline.
    async fn query(&self, what: &str, query: ControlQuery) -> Result<(ControlAnswer, Revision), Fault> {
        let answer = self.deadline.bound(self.core.client.control_query(query)).await;
        answer.map_err(|_| Fault::deadline())?.map_err(|e| unanswered(what, &e))
    }

    /// For calls that are no command.
    async fn check_epoch(&self) -> Result<(), Fault> {
        operator_epoch::check(self.core, self.epoch, self.deadline).await
    }
}

fn other(what: &str) -> Fault {
    Fault::internal(what, "an answer of another kind")
}

/// Refuses lists that are empty, too long, or name something twice.
fn check_list<'a>(field: &str, names: impl ExactSizeIterator<Item = &'a str>) -> Result<(), Fault> {
    let count = names.len();
    if !(1..=MAX_ELEMENTS).contains(&count) {
        return Err(Fault::invalid(field, count, &format!("1 to {MAX_ELEMENTS}")));
    }
    let mut seen = std::collections::HashSet::with_capacity(count);
    for name in names {
        if !seen.insert(name) {
            return Err(Fault::invalid(
                field,
                format!("{} twice", crate::fault::shown(name)),
                "each name once",
            ));
        }
    }
    Ok(())
}

macro_rules! calls {
    ($($name:ident($request:ident) -> $response:ident = $operation:path;)*) => {
        #[tonic::async_trait]
        impl Control for ControlService {
            type WatchTopicsStream = Events;

            async fn watch_topics(
                &self,
                request: Request<v1::WatchTopicsRequest>,
            ) -> Result<Response<Events>, Status> {
                let core = self.0.get()?;
                let epoch = operator_epoch::of(request.metadata())?;
                operator_epoch::check(core, epoch, Deadline::of(&request)).await?;
                Ok(Response::new(watch::watch(core, request.get_ref())?))
            }

            $(async fn $name(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                let deadline = Deadline::of(&request);
                let epoch = operator_epoch::of(request.metadata())?;
                let caller = Caller { core: self.0.get()?, epoch, deadline };
                Ok(Response::new($operation(caller, request.into_inner()).await?))
            })*
        }
    };
}

calls! {
    acquire_operator_epoch(AcquireOperatorEpochRequest) -> AcquireOperatorEpochResponse = epoch::acquire;
    get_operator_epoch(GetOperatorEpochRequest) -> GetOperatorEpochResponse = epoch::get;
    apply_topics(ApplyTopicsRequest) -> ApplyTopicsResponse = apply::apply;
    delete_topics(DeleteTopicsRequest) -> DeleteTopicsResponse = delete::delete;
    purge_topic(PurgeTopicRequest) -> PurgeTopicResponse = purge::purge;
    release_claims(ReleaseClaimsRequest) -> ReleaseClaimsResponse = claims::release;
    list_topics(ListTopicsRequest) -> ListTopicsResponse = list::list;
    quorum_status(QuorumStatusRequest) -> QuorumStatusResponse = quorum::status;
    change_quorum(ChangeQuorumRequest) -> ChangeQuorumResponse = quorum::change;
    announce_restart(AnnounceRestartRequest) -> AnnounceRestartResponse = restart::announce;
    check_member(CheckMemberRequest) -> CheckMemberResponse = check_member::check;
    get_feature_level(GetFeatureLevelRequest) -> GetFeatureLevelResponse = feature::get;
    raise_feature_level(RaiseFeatureLevelRequest) -> RaiseFeatureLevelResponse = feature::raise;
}
