//! The bidirectional stream of adds.

use tidemill_proto::bookie::{AddEntry, AddRequest, AddResponse, bookie_data_client::BookieDataClient};
use tokio::sync::mpsc;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use tonic::{Streaming, transport::Channel};

use super::{Target, codes, identity};
use crate::{
    core::Unknown,
    transport::{AddStream, NoStream, WireAck, WireAdd},
};

/// Messages of up to about 1 MiB that wait for the connection.
const QUEUED: usize = 8;

pub(super) async fn open(
    mut client: BookieDataClient<Channel>,
    target: Target,
) -> Result<AddStream, NoStream> {
    let (adds, mut queue) = mpsc::channel::<Vec<WireAdd>>(QUEUED);
    let (out, requests) = mpsc::channel(QUEUED);
    let hello = AddRequest { hello: Some(identity(&target)), adds: Vec::new() };
    out.send(hello).await.map_err(|_| NoStream(Unknown::Closed))?;
    let mut responses = client
        .add(ReceiverStream::new(requests))
        .await
        .map_err(|s| NoStream(codes::status(&s)))?
        .into_inner();
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
    let (ack_tx, acks) = mpsc::channel(QUEUED);
    tokio::spawn(async move {
        while let Some(batch) = queue.recv().await {
            let adds = batch
                .into_iter()
                .map(|a| AddEntry { request_id: a.request_id, entry: a.entry, recovery: false })
                .collect();
            if out.send(AddRequest { hello: None, adds }).await.is_err() {
                break;
            }
        }
    });
    tokio::spawn(forward(responses, ack_tx));
    Ok(AddStream { incarnation, adds, acks })
}

/// Ends when the stream does, or when nobody listens any more.
async fn forward(mut responses: Streaming<AddResponse>, acks: mpsc::Sender<Vec<WireAck>>) {
    loop {
        let next = tokio::select! {
            m = responses.next() => m,
            () = acks.closed() => break,
        };
        let Some(Ok(m)) = next else { break };
        let batch: Vec<WireAck> = m
            .results
            .into_iter()
            .map(|r| WireAck {
                request_id: r.request_id,
                answer: codes::add(codes::code(r.code), r.retry_after_ms),
            })
            .collect();
        if !batch.is_empty() && acks.send(batch).await.is_err() {
            break;
        }
    }
}
