//! `Producer`: writing. An answer OK means: fsynced on the ack quorum.

mod batches;
mod cache;
mod ids;
mod lane;
mod outcome;
mod stream;
mod unary;

use futures::stream::BoxStream;
use tidemill_partition_log::ProduceError;
use tidemill_proto::{
    direct::Inbound,
    v1::{self, producer_server::Producer},
};
use tidemill_types::PartitionId;
use tonic::{Request, Response, Status, Streaming};

pub(crate) use ids::Ids;

use crate::{
    core::{Core, CoreSlot},
    deadline::Deadline,
    fault::Fault,
    limits,
    route::{Topic, name_of},
};

/// The service.
pub(crate) struct ProducerService(pub(crate) CoreSlot);

#[tonic::async_trait]
impl Producer for ProducerService {
    async fn produce(
        &self,
        request: Request<v1::ProduceRequest>,
    ) -> Result<Response<v1::ProduceResponse>, Status> {
        let deadline = Deadline::of(&request);
        let core = self.0.get()?;
        let answer = unary::produce(core, request.into_inner(), deadline).await;
        core.metrics.produce_calls.inc();
        match answer {
            Ok(a) => Ok(Response::new(a)),
            Err(f) => {
                core.metrics.produce_failed.inc();
                Err(f.into())
            }
        }
    }

    type ProduceStreamStream = BoxStream<'static, Result<v1::ProduceAck, Status>>;

    async fn produce_stream(
        &self,
        request: Request<Streaming<v1::ProduceFrame>>,
    ) -> Result<Response<Self::ProduceStreamStream>, Status> {
        let deadline = Deadline::of(&request);
        let core = self.0.get()?;
        let inbound = Inbound::of(request, limits::MAX_PRODUCE_MESSAGE);
        Ok(Response::new(stream::run(core.clone(), inbound, deadline)))
    }

    async fn init_producer(
        &self,
        request: Request<v1::InitProducerRequest>,
    ) -> Result<Response<v1::InitProducerResponse>, Status> {
        let deadline = Deadline::of(&request);
        let core = self.0.get()?;
        if let Some((producer_id, epoch)) = ids::next_epoch(request.get_ref())? {
            return Ok(Response::new(v1::InitProducerResponse { producer_id, epoch }));
        }
        let id = deadline.bound(core.ids.next(&core.client)).await.map_err(|_| Fault::deadline())??;
        Ok(Response::new(v1::InitProducerResponse { producer_id: id, epoch: 0 }))
    }

    async fn producer_outcome(
        &self,
        request: Request<v1::ProducerOutcomeRequest>,
    ) -> Result<Response<v1::ProducerOutcomeResponse>, Status> {
        let deadline = Deadline::of(&request);
        let core = self.0.get()?;
        Ok(Response::new(outcome::outcome(core, request.into_inner(), deadline).await?))
    }
}

/// What a client hears of a refused or failed append.
fn refused(core: &Core, topic: &Topic, id: PartitionId, e: &ProduceError) -> Fault {
    let what = name_of(topic, id);
    match e {
        ProduceError::NotOwner => core.not_here(topic, id),
        ProduceError::Unknown => Fault::outcome_unknown(format!("append to {what}: {e}")),
        ProduceError::OutOfOrder { expected, .. } => {
            Fault::new(e.code(), format!("append to {what}: {e}")).with_expected_sequence(*expected)
        }
        ProduceError::TooLarge { max, .. } => {
            Fault::field(e.code(), "batches", &e.to_string(), &format!("at most {max} bytes"))
        }
        ProduceError::Overloaded { retry_after } => {
            core.metrics.overloaded.inc();
            Fault::overloaded(format!("append to {what}: {e}"))
                .with_retry(u32::try_from(retry_after.as_millis()).unwrap_or(u32::MAX))
        }
        ProduceError::DiskFull { retry_after, .. } => Fault::new(e.code(), format!("append to {what}: {e}"))
            .with_retry(u32::try_from(retry_after.as_millis()).unwrap_or(u32::MAX)),
        ProduceError::Empty => Fault::invalid("batches", "no batch", "one or more record batches"),
        _ => Fault::new(e.code(), format!("append to {what}: {e}")),
    }
}
