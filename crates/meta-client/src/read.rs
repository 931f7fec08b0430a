//! Linearizable reads: every try is a new read, so a retry is always safe.

use std::time::Duration;

use tidemill_proto::{
    convert::code_of,
    meta::{ReadRequest, read_response::Outcome},
};
use tidemill_types::{
    ErrorCode, Revision,
    meta::{Answer, Query},
};

use crate::{MetaError, client::Inner, codec, retry::Backoff};

/// Hints that are followed without a pause.
const FREE_HINTS: u32 = 3;

enum Try {
    Done(Answer, Revision),
    Elsewhere { news: bool },
    Again(String),
    Refused(MetaError),
}

pub(crate) async fn read(inner: &Inner, query: &Query) -> Result<(Answer, Revision), MetaError> {
    let bytes = codec::encode_query(query)?;
    let mut backoff = Backoff::new(inner.config.give_up_after);
    let mut free_hints = FREE_HINTS;
    loop {
        let left = backoff.left().unwrap_or(Duration::ZERO).min(inner.config.attempt_timeout);
        let why = match one_try(inner, bytes.clone(), left).await {
            Try::Done(answer, revision) => return Ok((answer, revision)),
            Try::Elsewhere { news: true } if free_hints > 0 => {
                free_hints -= 1;
                continue;
            }
            Try::Elsewhere { .. } => "no leader is known".to_owned(),
            Try::Again(why) => why,
            Try::Refused(e) => return Err(e),
        };
        if !backoff.pause().await {
            return Err(MetaError::Unavailable { why });
        }
    }
}

async fn one_try(inner: &Inner, query: Vec<u8>, timeout: Duration) -> Try {
    let Some(address) = inner.quorum.leader_or_next() else {
        return Try::Again("no member's address is known".to_owned());
    };
    let again = |why: String| {
        inner.quorum.failed(&address);
        Try::Again(why)
    };
    let mut stub = match inner.quorum.stub(&address).await {
        Ok(stub) => stub,
        Err(e) => return again(e.to_string()),
    };
    let message = ReadRequest { cluster: inner.cluster_bytes(), query };
    let answer = match tokio::time::timeout(timeout, stub.read(message)).await {
        Ok(Ok(answer)) => answer.into_inner(),
        Ok(Err(status)) => {
            let why = format!("{address}: {}", status.message());
            return match code_of(&status).map(|(code, _)| code) {
                Some(ErrorCode::WrongCluster) => {
                    Try::Refused(MetaError::WrongCluster { known: inner.cluster.get().copied(), why })
                }
                Some(code @ (ErrorCode::InvalidArgument | ErrorCode::MessageTooLarge)) => {
                    Try::Refused(MetaError::Refused { code, why })
                }
                _ => again(why),
            };
        }
        Err(_) => return again(format!("{address}: no answer in time")),
    };
    match answer.outcome {
        Some(Outcome::Answer(bytes)) => {
            inner.quorum.leads(&address);
            match codec::decode_answer(&bytes) {
                Ok(a) => Try::Done(a, Revision(answer.revision)),
                Err(e) => Try::Refused(e),
            }
        }
        Some(Outcome::Leader(hint)) => Try::Elsewhere { news: inner.quorum.hint(&address, &hint) },
        None => again(format!("{address}: an answer without content")),
    }
}
