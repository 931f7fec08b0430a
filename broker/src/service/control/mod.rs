//! `Control`: declared wishes of operators and of `tidemill apply`; any broker answers.

use std::pin::Pin;

use tidemill_proto::v1::{self, control_server::Control};
use tidemill_types::ErrorCode;
use tonic::{Request, Response, Status};

use crate::{core::CoreSlot, fault::Fault};

/// The service.
pub(crate) struct ControlService(pub(crate) CoreSlot);

type Events = Pin<Box<dyn futures::Stream<Item = Result<v1::TopicEvent, Status>> + Send>>;

/// What this version does not do yet.
fn unsupported(slot: &CoreSlot, what: &str) -> Status {
    match slot.get() {
        Ok(_) => Fault::new(ErrorCode::Unsupported, format!("{what} is not in this version")).into(),
        Err(f) => f.into(),
    }
}

macro_rules! not_yet {
    ($($name:ident($request:ident) -> $response:ident;)*) => {
        #[tonic::async_trait]
        impl Control for ControlService {
            type WatchTopicsStream = Events;

            async fn watch_topics(&self, _: Request<v1::WatchTopicsRequest>) -> Result<Response<Events>, Status> {
                Err(unsupported(&self.0, "watch_topics"))
            }

            $(async fn $name(&self, _: Request<v1::$request>) -> Result<Response<v1::$response>, Status> {
                Err(unsupported(&self.0, stringify!($name)))
            })*
        }
    };
}

not_yet! {
    acquire_operator_epoch(AcquireOperatorEpochRequest) -> AcquireOperatorEpochResponse;
    get_operator_epoch(GetOperatorEpochRequest) -> GetOperatorEpochResponse;
    apply_topics(ApplyTopicsRequest) -> ApplyTopicsResponse;
    delete_topics(DeleteTopicsRequest) -> DeleteTopicsResponse;
    purge_topic(PurgeTopicRequest) -> PurgeTopicResponse;
    release_claims(ReleaseClaimsRequest) -> ReleaseClaimsResponse;
    list_topics(ListTopicsRequest) -> ListTopicsResponse;
    quorum_status(QuorumStatusRequest) -> QuorumStatusResponse;
    change_quorum(ChangeQuorumRequest) -> ChangeQuorumResponse;
    announce_restart(AnnounceRestartRequest) -> AnnounceRestartResponse;
    check_member(CheckMemberRequest) -> CheckMemberResponse;
    get_feature_level(GetFeatureLevelRequest) -> GetFeatureLevelResponse;
    raise_feature_level(RaiseFeatureLevelRequest) -> RaiseFeatureLevelResponse;
}
