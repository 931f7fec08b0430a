//! The service that brokers, bookies and tools speak to (`proto/tidemill/meta/v1/meta.proto`). One operation per file.

mod cluster;
mod feature;
mod initialize;
mod members;
mod peers;
mod propose;
mod read;
mod renew;
mod status;
mod watch;

use std::{pin::Pin, sync::Arc};

use openraft::async_runtime::WatchReceiver;
use tidemill_proto::{
    convert::{self, Details},
    meta::{
        ChangeMembersRequest, ChangeMembersResponse, InitializeRequest, InitializeResponse, LeaderHint,
        ProposeRequest, ProposeResponse, RaiseFeatureLevelRequest, RaiseFeatureLevelResponse, ReadRequest,
        ReadResponse, RenewRequest, RenewResponse, StatusRequest, StatusResponse, WatchEvent, WatchRequest,
        meta_server::Meta,
    },
};
use tidemill_types::ErrorCode;
use tonic::{Request, Response, Status};

pub(crate) use self::cluster::ClusterCell;
use crate::node::Node;

/// The service of one member.
#[derive(Clone)]
pub(crate) struct MetaService {
    node: Arc<Node>,
}

impl MetaService {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    /// Who leads, for a caller that asked the wrong member. A member without a quorum says so instead: waiting for a
    /// leader would be in vain.
    fn elsewhere(&self) -> Result<LeaderHint, Status> {
        if self.node.raft.metrics().borrow_watched().membership_config.nodes().next().is_none() {
            let why = "the metadata quorum is not initialised: call Initialize once, with its first voters \
                       (`tidemill up` does it by itself)";
            return Err(refuse_for_now(ErrorCode::NotReady, why, NOT_INITIALISED_MS));
        }
        Ok(self.hint())
    }

    fn hint(&self) -> LeaderHint {
        self.node.counters.not_leader.inc();
        let (node, address) = self.node.leader();
        // A hint that points back says "unknown" to the client, which then waits a little.
        LeaderHint { node, address }
    }
}

/// Retry hint of a member that waits for its quorum to be made, ms.
const NOT_INITIALISED_MS: u64 = 200;

/// A refusal with its code.
fn refuse(code: ErrorCode, why: &str) -> Status {
    convert::status(code, why, Details::default())
}

/// A refusal that ends by itself.
fn refuse_for_now(code: ErrorCode, why: &str, retry_after_ms: u64) -> Status {
    convert::status(code, why, Details { retry_after_ms: Some(retry_after_ms), ..Details::default() })
}

/// A field outside of what is allowed.
fn invalid(field: &str, allowed: &str) -> Status {
    let details = Details { field: Some((field.to_owned(), allowed.to_owned())), ..Details::default() };
    convert::status(ErrorCode::InvalidArgument, &format!("{field}: {allowed}"), details)
}

type Events = Pin<Box<dyn futures::Stream<Item = Result<WatchEvent, Status>> + Send>>;

#[tonic::async_trait]
impl Meta for MetaService {
    type WatchStream = Events;

    async fn propose(&self, r: Request<ProposeRequest>) -> Result<Response<ProposeResponse>, Status> {
        propose::propose(self, r.into_inner()).await.map(Response::new)
    }

    async fn read(&self, r: Request<ReadRequest>) -> Result<Response<ReadResponse>, Status> {
        read::read(self, r.into_inner()).await.map(Response::new)
    }

    async fn watch(&self, r: Request<WatchRequest>) -> Result<Response<Events>, Status> {
        watch::watch(self, r.get_ref()).map(Response::new)
    }

    async fn renew(&self, r: Request<RenewRequest>) -> Result<Response<RenewResponse>, Status> {
        renew::renew(self, r.into_inner()).await.map(Response::new)
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        status::status(&self.node).await.map(Response::new)
    }

    async fn initialize(
        &self,
        r: Request<InitializeRequest>,
    ) -> Result<Response<InitializeResponse>, Status> {
        initialize::initialize(self, r.into_inner()).await.map(Response::new)
    }

    async fn change_members(
        &self,
        r: Request<ChangeMembersRequest>,
    ) -> Result<Response<ChangeMembersResponse>, Status> {
        members::change(self, r.into_inner()).await.map(Response::new)
    }

    async fn raise_feature_level(
        &self,
        r: Request<RaiseFeatureLevelRequest>,
    ) -> Result<Response<RaiseFeatureLevelResponse>, Status> {
        feature::raise(self, r.into_inner()).await.map(Response::new)
    }
}
