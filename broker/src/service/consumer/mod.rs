//! `Consumer`: reading by partition and offset.

mod fetch;
mod items;
mod list_offsets;
mod read;
mod records;
mod share;

use tidemill_partition_log::FetchError;
use tidemill_proto::v1::{self, consumer_server::Consumer};
use tidemill_types::PartitionId;
use tonic::{Request, Response, Status};

use crate::{
    core::{Core, CoreSlot},
    deadline::Deadline,
    fault::Fault,
    route::{Topic, name_of},
};

/// The service.
pub(crate) struct ConsumerService(pub(crate) CoreSlot);

#[tonic::async_trait]
impl Consumer for ConsumerService {
    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Result<Response<v1::FetchResponse>, Status> {
        let deadline = Deadline::of(&request);
        let core = self.0.get()?;
        Ok(Response::new(fetch::fetch(core, request.into_inner(), deadline).await?))
    }

    async fn list_offsets(
        &self,
        request: Request<v1::ListOffsetsRequest>,
    ) -> Result<Response<v1::ListOffsetsResponse>, Status> {
        let deadline = Deadline::of(&request);
        let core = self.0.get()?;
        let answer = deadline.bound(list_offsets::list(core, request.into_inner())).await;
        Ok(Response::new(answer.map_err(|_| Fault::deadline())??))
    }
}

/// What a client hears of a read that gave nothing.
fn refused(core: &Core, topic: &Topic, id: PartitionId, e: &FetchError) -> Fault {
    let what = name_of(topic, id);
    let fault = Fault::new(e.code(), format!("read {what}: {e}"));
    match e {
        FetchError::NotOwner => core.not_here(topic, id),
        FetchError::NotReady => Fault::opening(&what),
        FetchError::OutOfRange { log_start, high_watermark, .. } => {
            fault.with_log(*log_start, *high_watermark)
        }
        FetchError::Trimmed { log_start } => {
            let end = core.owned.log(id).map_or(*log_start, |l| l.high_watermark());
            fault.with_log(*log_start, end)
        }
        _ => fault,
    }
}
