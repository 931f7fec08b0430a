//! The gRPC server: services, health, reflection, transport settings.

use std::future::Future;

use tidemill_proto::{
    DESCRIPTORS,
    direct::Receiving,
    v1::{
        admin_server::AdminServer, consumer_server::ConsumerServer, control_server::ControlServer,
        groups_server::GroupsServer, metadata_server::MetadataServer, producer_server::ProducerServer,
    },
};
use tidemill_runtime::{defaults, net::Listener};
use tonic::{server::NamedService, transport::Server};
use tonic_health::{
    ServingStatus,
    pb::health_server::HealthServer,
    server::{HealthReporter, HealthService},
};

use crate::{
    core::CoreSlot,
    error::BrokerError,
    limits,
    service::{
        admin::AdminService, consumer::ConsumerService, control::ControlService, group::GroupService,
        metadata::MetadataService, producer::ProducerService,
    },
    typed::TypedErrors,
};

/// The call whose messages are taken without a copy.
const PRODUCE_STREAM: &str = "/tidemill.v1.Producer/ProduceStream";

type Producer = ProducerServer<ProducerService>;
type Consumer = ConsumerServer<ConsumerService>;
type Metadata = MetadataServer<MetadataService>;
type Admin = AdminServer<AdminService>;
type Control = ControlServer<ControlService>;
type Groups = GroupsServer<GroupService>;

/// Switches gRPC health of all services at once.
#[derive(Clone, Debug)]
pub(crate) struct ServingSwitch(HealthReporter);

impl ServingSwitch {
    /// SERVING or NOT_SERVING, for the server as a whole and for each service.
    pub(crate) async fn set(&self, serving: bool) {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for name in
            ["", Producer::NAME, Consumer::NAME, Metadata::NAME, Admin::NAME, Control::NAME, Groups::NAME]
        {
            self.0.set_service_status(name, status).await;
        }
    }
}

/// Serves on `listener` until `end` resolves and every call has ended.
pub(crate) async fn build(
    slot: CoreSlot,
    listener: Listener,
    end: impl Future<Output = ()> + Send + 'static,
) -> Result<(impl Future<Output = ()> + Send + 'static, ServingSwitch), BrokerError> {
    let switch = ServingSwitch(HealthReporter::new());
    switch.set(false).await;
    let health = HealthServer::new(HealthService::from_health_reporter(switch.0.clone()));
    let refused = |e: tonic_reflection::server::Error| BrokerError::Reflection(e.to_string());
    let reflection = described().build_v1().map_err(refused)?;
    // Many tools and libraries still ask by the older name of the same service.
    let reflection_alpha = described().build_v1alpha().map_err(refused)?;
    let router = Server::builder()
        .initial_stream_window_size(defaults::STREAM_WINDOW)
        .initial_connection_window_size(defaults::CONNECTION_WINDOW)
        .max_frame_size(defaults::FRAME_BYTES)
        .max_concurrent_streams(limits::MAX_STREAMS)
        .http2_max_header_list_size(limits::MAX_HEADER_LIST)
        .http2_keepalive_interval(Some(defaults::KEEP_ALIVE))
        .http2_keepalive_timeout(Some(defaults::KEEP_ALIVE))
        .layer(TypedErrors)
        .add_service(Receiving::new(
            ProducerServer::new(ProducerService(slot.clone()))
                .max_decoding_message_size(limits::MAX_PRODUCE_MESSAGE),
            PRODUCE_STREAM,
        ))
        .add_service(
            ConsumerServer::new(ConsumerService(slot.clone())).max_decoding_message_size(limits::MAX_MESSAGE),
        )
        .add_service(
            GroupsServer::new(GroupService(slot.clone())).max_decoding_message_size(limits::MAX_MESSAGE),
        )
        .add_service(
            MetadataServer::new(MetadataService(slot.clone())).max_decoding_message_size(limits::MAX_MESSAGE),
        )
        .add_service(
            AdminServer::new(AdminService(slot.clone())).max_decoding_message_size(limits::MAX_MESSAGE),
        )
        .add_service(ControlServer::new(ControlService(slot)).max_decoding_message_size(limits::MAX_MESSAGE))
        .add_service(health)
        .add_service(reflection)
        .add_service(reflection_alpha);
    let incoming = listener.incoming();
    let serve = async move {
        if let Err(e) = router.serve_with_incoming_shutdown(incoming, end).await {
            tracing::error!(error = %e, "the gRPC server ended");
        }
    };
    Ok((serve, switch))
}

/// The services that reflection describes.
fn described() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name(Producer::NAME)
        .with_service_name(Consumer::NAME)
        .with_service_name(Groups::NAME)
        .with_service_name(Metadata::NAME)
        .with_service_name(Admin::NAME)
        .with_service_name(Control::NAME)
        .with_service_name("grpc.health.v1.Health")
}
