//! The bidirectional stream of adds.

use tidemill_proto::{
    bookie::{AddEntry, AddRequest, AddResponse, AddResult},
    direct::outbound,
};
use tokio::sync::mpsc;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{DataClient, Target, codes, identity};
use crate::{
    core::Unknown,
    transport::{AddStream, NoStream, WireAck, WireAdd},
};

/// Messages of up to about 1 MiB that wait for the connection.
const QUEUED: usize = 8;

pub(super) async fn open(mut client: DataClient, target: Target) -> Result<AddStream, NoStream> {
    let (adds, queue) = mpsc::channel::<Vec<WireAdd>>(QUEUED);
    let hello = AddRequest { hello: Some(identity(&target)), adds: Vec::new() };
    let requests = tokio_stream::once(hello).chain(ReceiverStream::new(queue).map(request));
    let mut responses =
        client.add(outbound(requests)).await.map_err(|s| NoStream(codes::status(&s)))?.into_inner();
    // R26: who answers has to be who was meant.
    let first = responses.message().await.map_err(|s| NoStream(codes::status(&s)))?;
    let hello = first.and_then(|m| m.hello).ok_or(NoStream(Unknown::WrongIdentity))?;
    let (cluster, bookie, incarnation) =
        tidemill_proto::convert::parse_identity(&hello).map_err(|_| NoStream(Unknown::WrongIdentity))?;
    if (cluster, bookie) != (target.cluster, target.bookie)
        || (target.incarnation.0 != 0 && incarnation != target.incarnation)
    {
        return Err(NoStream(Unknown::WrongIdentity));
    }
    // In the reader's own task: an ack takes one turn of the runtime less.
    let acks = responses.map_while(Result::ok).map(answers).filter(|batch| !batch.is_empty());
    Ok(AddStream { incarnation, adds, acks: Box::pin(acks) })
}

fn request(batch: Vec<WireAdd>) -> AddRequest {
    let adds = batch
        .into_iter()
        .map(|a| AddEntry { request_id: a.request_id, entry: a.entry, recovery: false })
        .collect();
    AddRequest { hello: None, adds }
}

fn answers(message: AddResponse) -> Vec<WireAck> {
    let answer = |r: AddResult| WireAck {
        request_id: r.request_id,
        answer: codes::add(codes::code(r.code), r.retry_after_ms),
    };
    message.results.into_iter().map(answer).collect()
}
