//! A message of 1 GiB: refused by its length, before it is read, and the connection goes on.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use tidemill_proto::{convert::code_of, v1::producer_client::ProducerClient};
use tidemill_types::ErrorCode;
use tonic::{Status, body::Body};

use crate::{
    harness::{Cluster, batch, values, within},
    raw,
};

const HUGE: usize = 1 << 30;
const PIECE: usize = 64 << 10;
/// What flow control lets a client send that nobody reads: a stream's window and what waits on both sides.
const MOST: usize = 64 << 20;

/// A gRPC message of 1 GiB in pieces; `sent` counts what the transport took of it.
fn message(sent: &Arc<AtomicUsize>) -> Body {
    let mut head = vec![0];
    head.extend_from_slice(&u32::try_from(HUGE).unwrap().to_be_bytes());
    let piece = Bytes::from(vec![0; PIECE]);
    let pieces = std::iter::once(Bytes::from(head)).chain(std::iter::repeat_n(piece, HUGE / PIECE));
    let sent = sent.clone();
    let frames = stream::iter(pieces).map(move |b| {
        sent.fetch_add(b.len(), Ordering::Relaxed);
        Ok::<_, Status>(Frame::data(b))
    });
    Body::new(StreamBody::new(frames))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_a_gibibyte_is_refused_by_its_length_and_the_connection_stays_usable() {
    let c = Cluster::start(3).await;
    let b = c.broker("broker-0").await;
    b.create("t", 1, &[]).await;
    let (connection, origin) = raw::connect(&b).await;
    for method in ["Produce", "ProduceStream"] {
        let sent = Arc::new(AtomicUsize::new(0));
        let request = http::Request::post(format!("{origin}tidemill.v1.Producer/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(message(&sent))
            .unwrap();
        let mut sender = connection.0.clone();
        within("a connection", sender.ready()).await.unwrap();
        let answer = within("an answer", sender.send_request(request)).await.unwrap();
        // A refusal before the first answer stands in the headers, one within a stream in the trailers.
        let status = match Status::from_header_map(answer.headers()) {
            Some(status) => status,
            None => {
                let mut body = answer.into_body();
                let mut found = None;
                while let Some(frame) = within("the end", http_body_util::BodyExt::frame(&mut body)).await {
                    let Ok(frame) = frame else { break };
                    found = frame.trailers_ref().and_then(Status::from_header_map).or(found);
                }
                found.expect("a status in the trailers")
            }
        };
        let (code, _) = code_of(&status).unwrap_or_else(|| panic!("{method}: {status:?}"));
        assert_eq!(code, ErrorCode::MessageTooLarge, "{method}: {status:?}");
        assert!(status.message().contains(&HUGE.to_string()), "{method}: {status:?}");
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < MOST, "{method}: {sent} bytes were taken before the refusal");
    }
    // The same connection, the next call.
    let mut producer = ProducerClient::with_origin(connection, origin);
    let request = tidemill_proto::v1::ProduceRequest {
        topic: "t".into(),
        partition: Some(0),
        batches: batch(&values("v", 1), None),
        ..Default::default()
    };
    let done = within("a produce", producer.produce(request)).await.unwrap().into_inner();
    assert_eq!(done.base_offset, 0, "nothing of the refused messages was written");
    b.stop().await;
    c.stop().await;
}
