//! Asking other members.

use std::time::Duration;

use tidemill_proto::meta::{StatusRequest, StatusResponse, meta_client::MetaClient};
use tonic::transport::Channel;

use crate::node::Node;

/// One question to one member.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn stub(node: &Node, address: &str) -> Result<MetaClient<Channel>, String> {
    node.book.channel(address).map(MetaClient::new)
}

pub(super) async fn status_of(node: &Node, address: &str) -> Result<StatusResponse, String> {
    let mut stub = stub(node, address)?;
    match tokio::time::timeout(TIMEOUT, stub.status(StatusRequest {})).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => {
            node.book.failed(address);
            Err(format!("{address}: {}", status.message()))
        }
        Err(_) => Err(format!("{address}: no answer within {TIMEOUT:?}")),
    }
}
