//! The receiving side: messages whose payloads are slices of what came in.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http_body::Body as _;
use prost::Message;
use tonic::{
    Code, Request, Status, Streaming,
    body::Body,
    codegen::{Service, http, tokio_stream::Stream},
    server::NamedService,
};

use super::{rope::Rope, swap::Swap};

/// The compressed flag and the length in front of each message.
const PREFIX: usize = 5;

/// A server whose method at `path` gets its messages as [`Inbound`].
#[derive(Clone, Debug)]
pub struct Receiving<S> {
    inner: S,
    path: &'static str,
}

impl<S> Receiving<S> {
    /// `path` as `/package.Service/Method`, a method whose request is a stream.
    pub fn new(inner: S, path: &'static str) -> Self {
        Self { inner, path }
    }
}

impl<S: NamedService> NamedService for Receiving<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Receiving<S>
where
    S: Service<http::Request<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> S::Future {
        if request.uri().path() == self.path {
            let body = std::mem::take(request.body_mut());
            request.extensions_mut().insert(Swap::new(body));
        }
        self.inner.call(request)
    }
}

/// The messages of a streaming request. Without [`Receiving`] in front of the service they come from the stubs.
#[derive(Debug)]
pub struct Inbound<M>(Source<M>);

#[derive(Debug)]
enum Source<M> {
    Stub(Box<Streaming<M>>),
    Body(Box<Reader>),
}

#[derive(Debug)]
struct Reader {
    body: Body,
    rope: Rope,
    /// Length of the message that is being read, once its prefix is there.
    len: Option<usize>,
    max: usize,
    ended: bool,
}

impl<M> Inbound<M> {
    /// Of a request; a message of more than `max` bytes ends the stream with `OUT_OF_RANGE`.
    pub fn of(request: Request<Streaming<M>>, max: usize) -> Self {
        let swap = request.extensions().get::<Swap>().and_then(Swap::take);
        Self(match swap {
            Some(body) => {
                Source::Body(Box::new(Reader { body, rope: Rope::default(), len: None, max, ended: false }))
            }
            None => Source::Stub(Box::new(request.into_inner())),
        })
    }
}

impl<M: Message + Default> Inbound<M> {
    /// The next message; `None` when the sender has ended the stream.
    ///
    /// # Errors
    /// The stream is broken or a message is not what it has to be. Nothing follows.
    pub async fn message(&mut self) -> Result<Option<M>, Status> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await.transpose()
    }
}

impl<M: Message + Default> Stream for Inbound<M> {
    type Item = Result<M, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.get_mut().0 {
            Source::Stub(s) => Pin::new(&mut **s).poll_next(cx),
            Source::Body(r) => {
                let next = ready!(r.poll(cx));
                r.ended |= !matches!(next, Ok(Some(_)));
                Poll::Ready(next.transpose())
            }
        }
    }
}

impl Reader {
    fn poll<M: Message + Default>(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<M>, Status>> {
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        loop {
            if let Some(message) = self.gathered()? {
                return Poll::Ready(Ok(Some(message)));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.rope.push(data);
                    }
                }
                // The caller is gone: the end, as the stubs see it.
                Some(Err(status)) if status.code() == Code::Cancelled => return Poll::Ready(Ok(None)),
                Some(Err(status)) => return Poll::Ready(Err(status)),
                None if self.rope.has_remaining() || self.len.is_some() => {
                    return Poll::Ready(Err(Status::internal("the stream ends within a message")));
                }
                None => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// A message, if all of it is there.
    fn gathered<M: Message + Default>(&mut self) -> Result<Option<M>, Status> {
        let len = match self.len {
            Some(len) => len,
            None if self.rope.remaining() < PREFIX => return Ok(None),
            None => {
                if self.rope.get_u8() != 0 {
                    return Err(Status::unimplemented("compressed messages are not taken"));
                }
                let len = self.rope.get_u32() as usize;
                if len > self.max {
                    let max = self.max;
                    return Err(Status::out_of_range(format!(
                        "decoded message length too large: found {len} bytes, the limit is: {max} bytes"
                    )));
                }
                *self.len.insert(len)
            }
        };
        if self.rope.remaining() < len {
            return Ok(None);
        }
        self.len = None;
        M::decode(self.rope.split_to(len)).map(Some).map_err(|e| Status::internal(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body::Frame;
    use tonic::codegen::tokio_stream::StreamExt;

    use super::{
        super::{pieces::Pieces, send::Pieced},
        *,
    };
    use crate::{bookie::AddEntry, bookie::AddRequest, v1::ProduceFrame};

    struct Chunks(std::vec::IntoIter<Bytes>);

    impl http_body::Body for Chunks {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(self.0.next().map(|c| Ok(Frame::data(c))))
        }
    }

    fn inbound<M>(chunks: Vec<Bytes>, max: usize) -> Inbound<M> {
        let body = Body::new(Chunks(chunks.into_iter()));
        Inbound(Source::Body(Box::new(Reader { body, rope: Rope::default(), len: None, max, ended: false })))
    }

    fn encoded(messages: &[impl Pieced]) -> Vec<Bytes> {
        let mut out = Pieces::default();
        messages.iter().for_each(|m| m.put(&mut out));
        std::iter::from_fn(|| out.take()).collect()
    }

    #[tokio::test]
    async fn messages_come_back_however_they_are_cut() {
        let messages: Vec<AddRequest> = [0usize, 5, 40_000]
            .into_iter()
            .map(|n| AddRequest {
                hello: None,
                adds: vec![AddEntry { request_id: 9, entry: vec![8; n].into(), recovery: n == 5 }; 2],
            })
            .collect();
        let whole: Vec<u8> = encoded(&messages).iter().flat_map(|p| p.iter().copied()).collect();
        for step in [1, 3, 1_000, whole.len()] {
            let chunks = whole.chunks(step).map(Bytes::copy_from_slice).collect();
            let found: Result<Vec<AddRequest>, Status> = inbound(chunks, 1 << 20).collect().await;
            assert_eq!(found.unwrap(), messages, "chunks of {step}");
        }
    }

    #[tokio::test]
    async fn a_payload_in_a_piece_of_its_own_is_not_copied() {
        let batches = Bytes::from(vec![1; 100_000]);
        let frame = ProduceFrame { correlation: 1, batches: batches.clone(), ..ProduceFrame::default() };
        let mut found = inbound::<ProduceFrame>(encoded(&[frame]), 1 << 20);
        assert_eq!(found.message().await.unwrap().unwrap().batches.as_ptr(), batches.as_ptr());
        assert!(found.message().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn what_is_wrong_ends_the_stream_with_a_reason() {
        let good = ProduceFrame { correlation: 1, ..ProduceFrame::default() };
        let bytes = encoded(&[good])[0].clone();
        let mut compressed = bytes.to_vec();
        compressed[0] = 1;
        let mut garbage = bytes.to_vec();
        garbage[5] = 0xff;
        for (piece, max, code) in [
            (bytes.slice(..bytes.len() - 1), 100, Code::Internal),
            (bytes.slice(..3), 100, Code::Internal),
            (bytes.clone(), 1, Code::OutOfRange),
            (compressed.into(), 100, Code::Unimplemented),
            (garbage.into(), 100, Code::Internal),
        ] {
            let mut found = inbound::<ProduceFrame>(vec![piece], max);
            assert_eq!(found.message().await.unwrap_err().code(), code);
            assert!(found.message().await.unwrap().is_none());
        }
    }
}
