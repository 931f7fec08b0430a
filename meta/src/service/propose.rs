//! `Propose`.

use tidemill_metadata::{State, codec::MAX_REQUEST_LEN, decode_request, encode_result, needed_level};
use tidemill_proto::meta::{ProposeRequest, ProposeResponse, propose_response::Outcome};
use tidemill_types::{
    BookieState, ErrorCode, SessionId,
    meta::{Command, Rejection},
};
use tonic::Status;

use super::{MetaService, invalid, refuse, refuse_for_now};
use crate::node::{PROPOSAL_BYTES, PROPOSALS, Proposed};

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
    // Members of an older binary could not read it back from the log.
    let (needed, level) = (needed_level(&request.command), node.machine.with(State::feature_level));
    if level < needed {
        let refused = Err(Rejection::FeatureLevel { needed, level });
        let bytes = encode_result(&refused).map_err(|e| refuse(ErrorCode::Internal, &e.to_string()))?;
        return Ok(ProposeResponse { outcome: Some(Outcome::Result(bytes)), revision: 0 });
    }
    drop(request);
    let overloaded = |what: String| {
        node.counters.overloaded.inc();
        refuse_for_now(ErrorCode::Overloaded, &format!("{what} proposals are under way"), OVERLOADED_MS)
    };
    let Ok(_permit) = node.proposals.try_acquire() else { return Err(overloaded(format!("{PROPOSALS}"))) };
    let bytes = u32::try_from(r.request.len()).unwrap_or(u32::MAX);
    let Ok(_bytes) = node.proposal_bytes.try_acquire_many(bytes) else {
        return Err(overloaded(format!("{PROPOSAL_BYTES} bytes of")));
    };
    match node.propose(r.request, None).await {
        Proposed::Applied(revision, result) => {
            node.counters.proposals.inc();
            let bytes = encode_result(&result)
                .map_err(|e| refuse(ErrorCode::OutcomeUnknown, &format!("applied, but the answer: {e}")))?;
            Ok(ProposeResponse { outcome: Some(Outcome::Result(bytes)), revision: revision.0 })
        }
        Proposed::Elsewhere => {
            Ok(ProposeResponse { outcome: Some(Outcome::Leader(service.elsewhere()?)), revision: 0 })
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
            Command::BookieBoot(_) | Command::OpenSession(_) | Command::EndSession { .. } => Ok(()),
            // The wish of an operator, which is no member: the state machine judges it as anybody's.
            Command::SetMemberState {
                state: BookieState::Rw | BookieState::Draining,
                restarting: false,
                ..
            } => Ok(()),
            _ => Err(invalid("session", "this command needs one")),
        },
        None => Ok(()),
    }
}
