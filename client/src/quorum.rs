//! Members asked directly, before there is a broker: what a first start has to know (metadata, Bootstrap).

use std::time::Duration;

use tidemill_proto::{
    bookie::{GetInfoRequest, bookie_control_client::BookieControlClient},
    meta::{InitializeRequest, StatusRequest, meta_client::MetaClient},
};
use tidemill_types::{ClusterId, ErrorCode, MemberId};
use tokio::time::timeout;
use tonic::{Response, Status, transport::Channel};
use uuid::Uuid;

use crate::{ClientConfig, ClientError, pool::Pool};

/// A first election takes a second or two.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a member of the metadata quorum says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaReport {
    /// Nothing was ever stored on its disk, and it belongs to no cluster: it may be part of a new quorum.
    pub empty: bool,
    /// The cluster that it belongs to.
    pub cluster: Option<ClusterId>,
    /// Uuid of its volume.
    pub member: Option<MemberId>,
    /// Raft node id.
    pub node: u64,
    /// `uninitialized`, `learner`, `follower`, `candidate`, `leader`.
    pub role: String,
    /// Addresses of the voters that it knows.
    pub voters: Vec<String>,
    /// Version of its binary.
    pub version: String,
}

/// What a bookie says of itself; it answers from its first moment on, also without a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookieReport {
    /// Its disks have cookies: it holds, or held, data of a cluster.
    pub cookie: bool,
    /// The cluster of its cookies.
    pub cluster: Option<ClusterId>,
    /// Its uuid, as soon as it has one.
    pub member: Option<MemberId>,
    /// `starting`, `rw`, `ro`, `limbo`, `draining`, `lost`, `retired`.
    pub state: String,
    /// Version of its binary.
    pub version: String,
}

fn channel(address: &str) -> Result<Channel, ClientError> {
    Pool::new(ClientConfig::default()).channel(address)
}

/// One call within `wait`.
async fn ask<T>(
    what: &str,
    wait: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, ClientError> {
    match timeout(wait, call).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(ClientError::from_status(what, &status)),
        Err(_) => {
            Err(ClientError::new(ErrorCode::DeadlineExceeded, format!("{what}: no answer within {wait:?}")))
        }
    }
}

fn id(bytes: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(bytes).ok().filter(|u| !u.is_nil())
}

/// Asks the meta member at `address` (`host:port`); needs no leader and no cluster.
///
/// # Errors
/// An address that does not parse, or no answer within `wait`.
pub async fn meta_report(address: &str, wait: Duration) -> Result<MetaReport, ClientError> {
    let mut stub = MetaClient::new(channel(address)?);
    let s = ask(&format!("status of meta {address}"), wait, stub.status(StatusRequest {})).await?;
    let cluster = id(&s.cluster).map(ClusterId);
    Ok(MetaReport {
        empty: s.role == "uninitialized" && cluster.is_none(),
        cluster,
        member: id(&s.member).map(MemberId),
        node: s.node,
        role: s.role,
        voters: s.voters.into_iter().map(|v| v.address).collect(),
        version: s.version,
    })
}

/// Asks the bookie at `address` (`host:port`); needs no quorum.
///
/// # Errors
/// An address that does not parse, or no answer within `wait`.
pub async fn bookie_report(address: &str, wait: Duration) -> Result<BookieReport, ClientError> {
    let mut stub = BookieControlClient::new(channel(address)?);
    let request = GetInfoRequest { identity: None };
    let info = ask(&format!("status of bookie {address}"), wait, stub.get_info(request)).await?;
    let identity = info.identity.unwrap_or_default();
    let cluster = id(&identity.cluster).map(ClusterId);
    Ok(BookieReport {
        cookie: cluster.is_some(),
        cluster,
        member: id(&identity.bookie).map(MemberId),
        state: info.state,
        version: info.version,
    })
}

/// Makes a quorum of the meta members at `voters` (1, 3 or 5 addresses), once in a cluster's life: every one of them must report
/// an empty disk. The same cluster id again is a success. Ask all meta members and all bookies first ([`MetaReport::empty`],
/// [`BookieReport::cookie`]): the quorum cannot know of bookies that hold an older cluster's data.
///
/// # Errors
/// `CONFLICT` when a member is not empty, `WRONG_CLUSTER`, `INVALID_ARGUMENT`; retryable codes when a member did not answer.
pub async fn initialize(cluster: ClusterId, voters: &[String]) -> Result<(), ClientError> {
    let Some(first) = voters.first() else {
        return Err(ClientError::new(ErrorCode::InvalidArgument, "initialize: voters: 1, 3 or 5 addresses"));
    };
    let mut stub = MetaClient::new(channel(first)?);
    let request = InitializeRequest { cluster: cluster.0.as_bytes().to_vec(), voters: voters.to_vec() };
    ask("initialize the metadata quorum", INITIALIZE_TIMEOUT, stub.initialize(request)).await.map(|_| ())
}
