//! `Propose`.

use tidemill_metadata::{codec::MAX_REQUEST_LEN, decode_request, encode_result};
use tidemill_proto::meta::{ProposeRequest, ProposeResponse, propose_response::Outcome};
use tidemill_types::{ErrorCode, SessionId, meta::Command};
use tonic::Status;

use super::{MetaService, invalid, refuse, refuse_for_now};
use crate::node::{PROPOSALS, Proposed};

/// Retry hint when too much is under way, ms.
const OVERLOADED_MS: u64 = 50;

pub(super) async fn propose(service: &MetaService, r: ProposeRequest) -> Result<ProposeResponse, Status> {
    let node = &service.node;
    node.cluster.check(&r.cluster)?;
    if r.request.len() > MAX_REQUEST_LEN {
        let why = format!("a request of {} bytes, at most {MAX_REQUEST_LEN} allowed", r.request.len());
        return Err(refuse(ErrorCode::MessageTooLarge, &why));
    }
    // Read before it gets into the log: an entry that cannot be applied would stop every member.
    let request = decode_request(&r.request).map_err(|e| invalid("request", &e.to_string()))?;
    check_sender(&request.command, request.session)?;
    drop(request);
    let Ok(_permit) = node.proposals.try_acquire() else {
        node.counters.overloaded.inc();
        let why = format!("{PROPOSALS} proposals are under way");
        return Err(refuse_for_now(ErrorCode::Overloaded, &why, OVERLOADED_MS));
    };
    match node.propose(r.request).await {
        Proposed::Applied(revision, result) => {
            node.counters.proposals.inc();
            let bytes = encode_result(&result)
                .map_err(|e| refuse(ErrorCode::OutcomeUnknown, &format!("applied, but the answer: {e}")))?;
            Ok(ProposeResponse { outcome: Some(Outcome::Result(bytes)), revision: revision.0 })
        }
        Proposed::Elsewhere => {
            Ok(ProposeResponse { outcome: Some(Outcome::Leader(service.hint())), revision: 0 })
        }
        Proposed::Unknown(why) => Err(refuse(ErrorCode::OutcomeUnknown, &why)),
        Proposed::Refused(why) => Err(refuse_for_now(ErrorCode::NotReady, &why, OVERLOADED_MS)),
    }
}

/// Commands that only the leader makes, from what it alone knows.
fn check_sender(command: &Command, session: SessionId) -> Result<(), Status> {
    let own = match command {
        Command::Init { .. } => Some("Init"),
        Command::ExpireSession { .. } => Some("ExpireSession"),
        Command::Tick { .. } => Some("Tick"),
        Command::ReportBookies(_) => Some("ReportBookies"),
        Command::Assign(_) => Some("Assign"),
        _ => None,
    };
    match own {
        Some(name) => Err(invalid("command", &format!("{name} is proposed by the leader alone"))),
        None if session == SessionId::NONE => match command {
            Command::BookieBoot(_) | Command::OpenSession(_) => Ok(()),
            _ => Err(invalid("session", "this command needs one")),
        },
        None => Ok(()),
    }
}
