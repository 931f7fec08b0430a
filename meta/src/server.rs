//! The gRPC server: transport settings, services, health, reflection.

use std::{sync::Arc, time::Duration};

use openraft::async_runtime::WatchReceiver;
use tidemill_metadata::codec::{MAX_REQUEST_LEN, MAX_RESULT_LEN};
use tidemill_proto::{DESCRIPTORS, meta::meta_server::MetaServer, raft::raft_server::RaftServer};
use tidemill_runtime::{Supervisor, defaults, net::Listener};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::Router};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    MetaStartError,
    network::{MAX_MESSAGE, RaftService},
    node::Node,
    service::MetaService,
};

/// Room for the fields around a largest request or answer.
const MESSAGE_EXTRA: usize = 64 << 10;
/// Concurrent streams of one connection.
const MAX_STREAMS: u32 = 10_000;
/// A connection that does not end by itself when the member stops is left behind after this time.
const DRAIN: Duration = Duration::from_secs(2);

/// The health service's switch.
#[derive(Clone, Debug)]
pub(crate) struct ServingSwitch(HealthReporter);

impl ServingSwitch {
    async fn set(&self, serving: bool) {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for name in ["", "tidemill.meta.v1.Meta"] {
            self.0.set_service_status(name, status).await;
        }
    }
}

/// Puts the server together; nothing is served yet.
pub(crate) async fn build(
    node: &Arc<Node>,
    raft: RaftService,
) -> Result<(Router, ServingSwitch), MetaStartError> {
    let (reporter, health) = tonic_health::server::health_reporter();
    let switch = ServingSwitch(reporter);
    switch.set(false).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|e| MetaStartError::Reflection(e.to_string()))?;
    let meta = MetaServer::new(MetaService::new(node.clone()))
        .max_decoding_message_size(MAX_REQUEST_LEN + MESSAGE_EXTRA)
        .max_encoding_message_size(MAX_RESULT_LEN + MESSAGE_EXTRA);
    let raft =
        RaftServer::new(raft).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
    let router = Server::builder()
        .initial_stream_window_size(defaults::STREAM_WINDOW)
        .initial_connection_window_size(defaults::CONNECTION_WINDOW)
        .max_frame_size(defaults::FRAME_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .tcp_nodelay(true)
        .http2_keepalive_interval(Some(defaults::KEEP_ALIVE))
        .http2_keepalive_timeout(Some(defaults::KEEP_ALIVE))
        .add_service(health)
        .add_service(reflection)
        .add_service(meta)
        .add_service(raft);
    Ok((router, switch))
}

/// Serves until `stop`, then lets connections end by themselves for a while.
pub(crate) async fn serve(router: Router, listener: Listener, sup: Supervisor, stop: CancellationToken) {
    let serving = router.serve_with_incoming_shutdown(listener.incoming(), stop.clone().cancelled_owned());
    let patience = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        ended = serving => if let Err(error) = ended {
            if sup.token().is_cancelled() {
                tracing::debug!(%error, "the gRPC server ended");
            } else {
                sup.fatal(&format!("the gRPC server ended: {error}"));
            }
        },
        () = patience => tracing::info!("connections that did not end by themselves are left"),
    }
}

/// Key of this member in the process's health.
pub(crate) fn health_key(node: &Node) -> String {
    format!("meta/{}/quorum", node.config.name)
}

/// Ready while a leader is known.
pub(crate) async fn keep_health(node: Arc<Node>, switch: ServingSwitch) {
    let key = health_key(&node);
    let mut metrics = node.raft.server_metrics();
    loop {
        let (leader, member) = {
            let m = metrics.borrow_watched();
            (m.current_leader.is_some(), m.membership_config.nodes().next().is_some())
        };
        if leader {
            node.sup.health().has(&key);
        } else if member {
            node.sup.health().waits_for(&key, "the metadata quorum has no leader");
        } else {
            node.sup
                .health()
                .waits_for(&key, "the metadata quorum is not initialised: it waits for one Initialize call");
        }
        switch.set(leader).await;
        if metrics.changed().await.is_err() {
            return;
        }
    }
}
