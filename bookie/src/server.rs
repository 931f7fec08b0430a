//! The gRPC server: transport settings, services, health, reflection.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use tidemill_proto::{
    DESCRIPTORS,
    bookie::{bookie_control_server::BookieControlServer, bookie_data_server::BookieDataServer},
    direct::Receiving,
};
use tidemill_runtime::{defaults, net::Listener};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::Router};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    connection::{Budgets, Connection},
    error::BookieError,
    service::{ControlService, DataService},
    shared::Core,
};

/// The call whose messages are taken without a copy.
const ADD: &str = "/tidemill.bookie.v1.BookieData/Add";
/// Concurrent streams of one connection.
const MAX_STREAMS: u32 = 10_000;
/// A connection that does not end by itself when the bookie stops is cut after this time.
const DRAIN: Duration = Duration::from_secs(5);

/// The health service's switch.
#[derive(Clone, Debug)]
pub(crate) struct ServingSwitch(HealthReporter);

impl ServingSwitch {
    /// Whether the services take work.
    pub(crate) async fn set(&self, serving: bool) {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for name in ["", "tidemill.bookie.v1.BookieData", "tidemill.bookie.v1.BookieControl"] {
            self.0.set_service_status(name, status).await;
        }
    }
}

/// Puts the server together; nothing is served yet.
pub(crate) async fn build(core: &Arc<Core>) -> Result<(Router, ServingSwitch), BookieError> {
    let (reporter, health) = tonic_health::server::health_reporter();
    let switch = ServingSwitch(reporter);
    switch.set(false).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|e| BookieError::Reflection(e.to_string()))?;
    let message = core.config.max_message_bytes();
    let data = BookieDataServer::new(DataService::new(core.clone()))
        .max_decoding_message_size(message)
        .max_encoding_message_size(message);
    let data = Receiving::new(data, ADD);
    let control = BookieControlServer::new(ControlService::new(core.clone()))
        .max_decoding_message_size(message)
        .max_encoding_message_size(message);
    let router = Server::builder()
        .initial_stream_window_size(defaults::STREAM_WINDOW)
        .initial_connection_window_size(defaults::CONNECTION_WINDOW)
        .max_frame_size(defaults::FRAME_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_keepalive_interval(Some(defaults::KEEP_ALIVE))
        .http2_keepalive_timeout(Some(defaults::KEEP_ALIVE))
        .add_service(health)
        .add_service(reflection)
        .add_service(data)
        .add_service(control);
    Ok((router, switch))
}

/// Serves until `stop`, then lets the streams end by themselves for a while; at once when the process cannot go on.
pub(crate) async fn serve(router: Router, listener: Listener, core: &Arc<Core>, stop: CancellationToken) {
    let (adds, reads) = (core.config.connection_add_bytes, core.config.read_in_flight_bytes);
    let cut = CancellationToken::new();
    let cutting = cut.clone();
    let incoming = listener
        .incoming()
        .map(move |io| io.map(|io| Connection::new(io, Budgets::new(adds, reads), cutting.clone())));
    let serving = router.serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
    tokio::pin!(serving);
    let patience = async {
        stop.cancelled().await;
        if core.sup.fatal_reason().is_none() {
            tokio::time::sleep(DRAIN).await;
        }
    };
    let ended = tokio::select! {
        r = &mut serving => r,
        () = patience => {
            tracing::info!("connections that did not end by themselves are cut");
            cut.cancel();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::warn!(%error, "the gRPC server ended");
    }
}
