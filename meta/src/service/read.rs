//! `Read`: linearizable by ReadIndex, never by a lease.

use tidemill_metadata::{codec::MAX_QUERY_LEN, decode_query, encode_answer};
use tidemill_proto::meta::{ReadRequest, ReadResponse, read_response::Outcome};
use tidemill_types::ErrorCode;
use tonic::Status;

use super::{MetaService, invalid, refuse, refuse_for_now};
use crate::check::NotLeading;

/// Largest answer in one message; lists come in pages, a whole view by a watch.
const MAX_ANSWER: usize = 32 << 20;
/// Retry hint while there is no quorum, ms.
const NO_QUORUM_MS: u64 = 100;

pub(super) async fn read(service: &MetaService, r: ReadRequest) -> Result<ReadResponse, Status> {
    let node = &service.node;
    node.cluster.check(&r.cluster)?;
    if r.query.len() > MAX_QUERY_LEN {
        let why = format!("a query of {} bytes, at most {MAX_QUERY_LEN} allowed", r.query.len());
        return Err(refuse(ErrorCode::MessageTooLarge, &why));
    }
    let query = decode_query(&r.query).map_err(|e| invalid("query", &e.to_string()))?;
    match node.check.wait().await {
        Ok(_) => {}
        Err(NotLeading::Elsewhere) => {
            return Ok(ReadResponse { outcome: Some(Outcome::Leader(service.elsewhere()?)), revision: 0 });
        }
        Err(NotLeading::Unproven(why)) => {
            return Err(refuse_for_now(ErrorCode::QuorumUnavailable, &why, NO_QUORUM_MS));
        }
    }
    let state = node.machine.state();
    let revision = state.revision();
    // Off the async threads: an answer may have megabytes.
    let bytes = tidemill_runtime::work::blocking(move || encode_answer(&state.query(&query)))
        .await
        .map_err(|e| refuse(ErrorCode::Internal, &e.to_string()))?
        .map_err(|e| refuse(ErrorCode::MessageTooLarge, &e.to_string()))?;
    if bytes.len() > MAX_ANSWER {
        let why = format!(
            "an answer of {} bytes, at most {MAX_ANSWER} allowed: ask for less, or watch",
            bytes.len()
        );
        return Err(refuse(ErrorCode::MessageTooLarge, &why));
    }
    node.counters.reads.inc();
    Ok(ReadResponse { outcome: Some(Outcome::Answer(bytes)), revision: revision.0 })
}
