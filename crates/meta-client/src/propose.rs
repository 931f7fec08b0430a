//! One proposal over all its tries.

use std::time::Duration;

use bytes::Bytes;
use tidemill_proto::{
    convert::code_of,
    meta::{ProposeRequest, propose_response::Outcome},
};
use tidemill_types::{
    ErrorCode,
    meta::{Rejection, Reply, Request},
};
use tonic::Status;

use crate::{MetaError, client::Inner, codec, retry::Backoff};

/// Hints that are followed without a pause; two members that name each other must not spin.
const FREE_HINTS: u32 = 3;

/// What one try brought.
enum Try {
    /// The command's result.
    Done(Result<Reply, Rejection>),
    /// Not the leader; nothing was proposed.
    Elsewhere { news: bool },
    /// Known not to have been proposed.
    NotSent(String),
    /// Sent, no answer.
    Unknown(String),
    /// Refused for good, not proposed.
    Refused(MetaError),
}

/// Sends `request` until it is answered or the time is over. Every try carries the same bytes, so that the quorum
/// recognises a retry whose first try committed (R9).
pub(crate) async fn propose(inner: &Inner, request: &Request) -> Result<Result<Reply, Rejection>, MetaError> {
    let bytes = Bytes::from(codec::encode_request(request)?);
    let mut backoff = Backoff::new(inner.config.give_up_after);
    // Once a try of unknown outcome was sent, no later refusal proves that the command was not applied.
    let mut unsettled: Option<String> = None;
    let mut free_hints = FREE_HINTS;
    loop {
        let left = backoff.left().unwrap_or(Duration::ZERO).min(inner.config.attempt_timeout);
        let last = match one_try(inner, bytes.clone(), left).await {
            Try::Done(result) => return settle(result, unsettled),
            Try::Elsewhere { news: true } if free_hints > 0 => {
                free_hints -= 1;
                continue;
            }
            Try::Elsewhere { .. } => "no leader is known".to_owned(),
            Try::NotSent(why) => why,
            Try::Unknown(why) => {
                unsettled = Some(why.clone());
                why
            }
            Try::Refused(e) => {
                return Err(unsettled.map_or(e, |why| MetaError::OutcomeUnknown { why }));
            }
        };
        if !backoff.pause().await {
            return Err(match unsettled {
                Some(why) => MetaError::OutcomeUnknown { why },
                None => MetaError::Unavailable { why: last },
            });
        }
    }
}

/// Rejections that speak of the request and not of the command become errors.
fn settle(
    result: Result<Reply, Rejection>,
    unsettled: Option<String>,
) -> Result<Result<Reply, Rejection>, MetaError> {
    match result {
        Err(Rejection::OutcomeUnknown) => {
            Err(MetaError::OutcomeUnknown { why: "the quorum no longer knows this request".to_owned() })
        }
        // The session's end says nothing about an earlier try of the same request.
        Err(Rejection::SessionExpired) => Err(match unsettled {
            Some(why) => MetaError::OutcomeUnknown { why: format!("{why}; then the session ended") },
            None => MetaError::SessionExpired,
        }),
        other => Ok(other),
    }
}

async fn one_try(inner: &Inner, request: Bytes, timeout: Duration) -> Try {
    let Some(address) = inner.quorum.leader_or_next() else {
        return Try::NotSent("no member's address is known".to_owned());
    };
    let mut stub = match inner.quorum.stub(&address).await {
        Ok(stub) => stub,
        Err(e) => {
            inner.quorum.failed(&address);
            return Try::NotSent(e.to_string());
        }
    };
    let message = ProposeRequest { cluster: inner.cluster_bytes(), request };
    let answer = match tokio::time::timeout(timeout, stub.propose(message)).await {
        Ok(Ok(answer)) => answer.into_inner(),
        Ok(Err(status)) => {
            let t = judge(inner, &address, &status);
            if matches!(t, Try::Unknown(_) | Try::NotSent(_)) {
                inner.quorum.failed(&address);
            }
            return t;
        }
        Err(_) => {
            inner.quorum.failed(&address);
            return Try::Unknown(format!("{address}: no answer in time"));
        }
    };
    match answer.outcome {
        Some(Outcome::Result(bytes)) => {
            inner.quorum.leads(&address);
            match codec::decode_result(&bytes) {
                Ok(result) => Try::Done(result),
                // Applied, but with an answer that this version cannot read.
                Err(e) => Try::Unknown(format!("{address}: {e}")),
            }
        }
        Some(Outcome::Leader(hint)) => Try::Elsewhere { news: inner.quorum.hint(&address, &hint) },
        None => Try::Unknown(format!("{address}: an answer without content")),
    }
}

fn judge(inner: &Inner, address: &str, status: &Status) -> Try {
    let why = format!("{address}: {}", status.message());
    match code_of(status).map(|(code, _)| code) {
        Some(ErrorCode::WrongCluster) => {
            Try::Refused(MetaError::WrongCluster { known: inner.cluster.get().copied(), why })
        }
        Some(code @ (ErrorCode::InvalidArgument | ErrorCode::MessageTooLarge | ErrorCode::Unsupported)) => {
            Try::Refused(MetaError::Refused { code, why })
        }
        Some(ErrorCode::NotReady | ErrorCode::QuorumUnavailable | ErrorCode::Overloaded) => Try::NotSent(why),
        _ => Try::Unknown(why),
    }
}
