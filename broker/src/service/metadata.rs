//! `Metadata`: what exists and who serves it, from the view of any broker.

use std::collections::BTreeSet;

use tidemill_proto::v1::{self, metadata_server::Metadata};
use tidemill_types::{MemberRole, TopicName};
use tonic::{Request, Response, Status};

use crate::{convert, core::CoreSlot, fault::Fault, limits};

/// The service.
pub(crate) struct MetadataService(pub(crate) CoreSlot);

#[tonic::async_trait]
impl Metadata for MetadataService {
    async fn describe(
        &self,
        request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::DescribeResponse>, Status> {
        let core = self.0.get()?;
        let names: BTreeSet<String> = request.into_inner().topics.into_iter().collect();
        if names.len() > limits::MAX_DESCRIBE_TOPICS {
            let allowed = format!("at most {} names", limits::MAX_DESCRIBE_TOPICS);
            return Err(Fault::invalid("topics", names.len(), &allowed).into());
        }
        let table = core.mirror.table();
        let show = |t: &tidemill_types::TopicRecord| convert::topic::to_proto(t, &table, &core.config);
        let (mut topics, mut unknown) = (Vec::new(), Vec::new());
        if names.is_empty() {
            let listed = |t: &&std::sync::Arc<tidemill_types::TopicRecord>| {
                !t.deleting && !t.name.is_internal() && !table.is_tombstone(t.id)
            };
            topics.extend(table.topics().filter(listed).map(|t| show(t)));
        }
        for name in names {
            match TopicName::new(&name).ok().and_then(|n| table.topic_by_name(&n)) {
                Some(t) => topics.push(show(t)),
                None => unknown.push(name),
            }
        }
        Ok(Response::new(v1::DescribeResponse {
            cluster: core.cluster.to_string(),
            topics,
            brokers: table.members_of(MemberRole::Broker).map(|m| convert::member::broker(m)).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            unknown,
        }))
    }
}
