//! Errors that the transport makes before a service sees the request get the form of all others.

use std::task::{Context, Poll};

use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Request, Response};
use tonic::Status;
use tower::{Layer, Service};

use crate::{
    deadline::Deadline,
    fault::{Fault, unreadable},
};

/// Answers calls whose deadline has passed, and replaces the status of a message that is above the size limit or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedErrors;

impl<S> Layer<S> for TypedErrors {
    type Service = Typed<S>;

    fn layer(&self, inner: S) -> Typed<S> {
        Typed(inner)
    }
}

/// The wrapped services.
#[derive(Clone, Debug)]
pub(crate) struct Typed<S>(S);

impl<S, A, B> Service<Request<A>> for Typed<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Default + Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        // A call that comes too late goes no further: not even its body is waited for.
        let deadline = Deadline::of_headers(request.headers());
        if deadline.passed() {
            let late = Status::from(Fault::deadline_not_written()).into_http();
            return std::future::ready(Ok(late)).boxed();
        }
        request.extensions_mut().insert(deadline);
        let answer = self.0.call(request);
        async move {
            let mut answer = answer.await?;
            retype(answer.headers_mut());
            Ok(answer)
        }
        .boxed()
    }
}

/// An error without a message has its status in the headers.
fn retype(headers: &mut HeaderMap) {
    let Some(status) = Status::from_header_map(headers) else { return };
    let Some(fault) = unreadable(status.code(), status.message()) else { return };
    if let Err(e) = Status::from(fault).add_header(headers) {
        tracing::debug!(error = %e, "a status does not fit into headers");
    }
}

#[cfg(test)]
mod tests {
    use tidemill_proto::convert::code_of;
    use tidemill_types::ErrorCode;

    use super::*;

    #[test]
    fn a_message_that_is_none_is_the_callers_fault() {
        for text in ["failed to decode Protobuf message: invalid varint", "Missing request message."] {
            let mut headers = HeaderMap::new();
            Status::internal(text).add_header(&mut headers).unwrap();
            retype(&mut headers);
            let status = Status::from_header_map(&headers).unwrap();
            assert_eq!(code_of(&status).unwrap().0, ErrorCode::InvalidArgument);
            assert!(status.message().contains(text), "{status:?}");
        }
        let mut headers = HeaderMap::new();
        Status::internal("a bug").add_header(&mut headers).unwrap();
        retype(&mut headers);
        assert_eq!(Status::from_header_map(&headers).unwrap().code(), tonic::Code::Internal);
    }

    #[test]
    fn the_size_limit_is_a_typed_error_and_others_stay() {
        let mut headers = HeaderMap::new();
        let text = "Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes";
        Status::out_of_range(text).add_header(&mut headers).unwrap();
        retype(&mut headers);
        let status = Status::from_header_map(&headers).unwrap();
        assert_eq!(code_of(&status).unwrap().0, ErrorCode::MessageTooLarge);
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert!(status.message().contains("8 bytes"), "{status:?}");
        let mut headers = HeaderMap::new();
        Status::out_of_range("offset").add_header(&mut headers).unwrap();
        retype(&mut headers);
        assert_eq!(Status::from_header_map(&headers).unwrap().message(), "offset");
    }
}
