//! The sending side: a request body whose payloads are not copied.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Frame;
use prost::{
    Message,
    encoding::{self, WireType, encode_key, encode_varint, encoded_len_varint},
};
use tonic::{
    Request, Status,
    body::Body,
    codegen::{Service, http, tokio_stream::Stream},
};

use super::{Pieces, swap::Swap};
use crate::{
    bookie::{AddEntry, AddRequest},
    v1::ProduceFrame,
};

/// Messages that are ready together share pieces up to about this size.
const TOGETHER: usize = 64 << 10;

/// A message that can say its bytes piece by piece. What it says MUST be what `prost` would encode, up to the order of
/// fields.
pub trait Pieced {
    /// Appends the whole message, length prefix included.
    fn put(&self, out: &mut Pieces);
}

/// The request of a streaming call whose messages come from `messages`. Goes to a stub over [`Sending`]; the stub's own
/// stream of messages is empty.
pub fn outbound<S, M, G>(messages: S) -> Request<NoMessages<G>>
where
    S: Stream<Item = M> + Send + 'static,
    M: Pieced + 'static,
{
    let body = PiecedBody { messages: Box::pin(messages), pieces: Pieces::default(), ended: false };
    let mut request = Request::new(NoMessages(std::marker::PhantomData));
    request.extensions_mut().insert(Swap::new(Body::new(body)));
    request
}

/// Stands where the stub wants a stream of messages.
#[derive(Debug)]
pub struct NoMessages<G>(std::marker::PhantomData<fn() -> G>);

impl<G> Stream for NoMessages<G> {
    type Item = G;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<G>> {
        Poll::Ready(None)
    }
}

/// A channel that exchanges the body of requests made by [`outbound`] and leaves others alone.
#[derive(Clone, Debug)]
pub struct Sending<S>(pub S);

impl<S> Service<http::Request<Body>> for Sending<S>
where
    S: Service<http::Request<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> S::Future {
        if let Some(body) = request.extensions_mut().remove::<Swap>().and_then(|s| s.take()) {
            *request.body_mut() = body;
        }
        self.0.call(request)
    }
}

struct PiecedBody<S> {
    messages: Pin<Box<S>>,
    pieces: Pieces,
    ended: bool,
}

impl<S, M> http_body::Body for PiecedBody<S>
where
    S: Stream<Item = M>,
    M: Pieced,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let me = &mut *self;
        while !me.ended && me.pieces.waiting() < TOGETHER {
            match me.messages.as_mut().poll_next(cx) {
                Poll::Ready(Some(message)) => message.put(&mut me.pieces),
                Poll::Ready(None) => me.ended = true,
                Poll::Pending => break,
            }
        }
        match me.pieces.take() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if me.ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// Key, length and payload of a `bytes` field.
fn payload(tag: u32, bytes: &Bytes, out: &mut Pieces) {
    if !bytes.is_empty() {
        encode_key(tag, WireType::LengthDelimited, out.fields());
        encode_varint(bytes.len() as u64, out.fields());
        out.payload(bytes);
    }
}

fn payload_len(tag: u32, bytes: &Bytes) -> usize {
    if bytes.is_empty() { 0 } else { encoding::bytes::encoded_len(tag, bytes) }
}

impl Pieced for AddRequest {
    fn put(&self, out: &mut Pieces) {
        let hello = self.hello.as_ref().map_or(0, |h| encoding::message::encoded_len(1, h));
        let adds: usize = self.adds.iter().map(add_len).map(|n| 1 + encoded_len_varint(n as u64) + n).sum();
        out.begin(hello + adds);
        if let Some(h) = &self.hello {
            encoding::message::encode(1, h, out.fields());
        }
        for add in &self.adds {
            encode_key(2, WireType::LengthDelimited, out.fields());
            encode_varint(add_len(add) as u64, out.fields());
            if add.request_id != 0 {
                encoding::uint64::encode(1, &add.request_id, out.fields());
            }
            if add.recovery {
                encoding::bool::encode(3, &true, out.fields());
            }
            payload(2, &add.entry, out);
        }
    }
}

fn add_len(add: &AddEntry) -> usize {
    let id = if add.request_id == 0 { 0 } else { encoding::uint64::encoded_len(1, &add.request_id) };
    id + payload_len(2, &add.entry) + if add.recovery { 2 } else { 0 }
}

impl Pieced for ProduceFrame {
    fn put(&self, out: &mut Pieces) {
        let fields = Self { batches: Bytes::new(), topic: self.topic.clone(), ..*self };
        out.begin(fields.encoded_len() + payload_len(5, &self.batches));
        fields.encode_raw(out.fields());
        payload(5, &self.batches, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bookie::Identity;

    fn pieces_of(message: &impl Pieced) -> Vec<Bytes> {
        let mut out = Pieces::default();
        message.put(&mut out);
        std::iter::from_fn(|| out.take()).collect()
    }

    fn whole(message: &impl Pieced) -> Vec<u8> {
        pieces_of(message).iter().flat_map(|p| p.iter().copied()).collect()
    }

    /// The prefix names the length, and the stubs' decoder understands the rest.
    fn same<M: Pieced + Message + Default + PartialEq + std::fmt::Debug>(message: &M) {
        let bytes = whole(message);
        assert_eq!(bytes[0], 0);
        let len = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) as usize;
        assert_eq!((len, len), (bytes.len() - 5, message.encoded_len()));
        assert_eq!(M::decode(&bytes[5..]).unwrap(), *message);
    }

    #[test]
    fn pieces_are_what_the_stubs_would_send() {
        let hello = Identity { cluster: vec![1; 16], bookie: vec![2; 16], incarnation: u64::MAX };
        let add = |request_id, len: usize, recovery| AddEntry {
            request_id,
            entry: Bytes::from(vec![3; len]),
            recovery,
        };
        same(&AddRequest::default());
        same(&AddRequest { hello: Some(hello), adds: Vec::new() });
        for len in [0, 1, 127, 128, 4_095, 4_096, 70_000] {
            same(&AddRequest { hello: None, adds: vec![add(0, len, true), add(u64::MAX, len, false)] });
            let batches = Bytes::from(vec![4; len]);
            same(&ProduceFrame { batches: batches.clone(), ..ProduceFrame::default() });
            let topic = "t".repeat(len.min(300));
            same(&ProduceFrame { correlation: 7, topic, partition: 300, epoch: 1 << 40, batches });
        }
    }

    #[test]
    fn a_large_payload_is_shared() {
        let entry = Bytes::from(vec![5; 10_000]);
        let adds = vec![AddEntry { request_id: 1, entry: entry.clone(), recovery: false }];
        let pieces = pieces_of(&AddRequest { hello: None, adds });
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[1].as_ptr(), entry.as_ptr());
    }
}
