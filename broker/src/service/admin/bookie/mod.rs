//! Bookies as an administrator sees them: drain, lost, retired, and what still needs one (metadata, Members).

mod describe;
mod drain;
mod lost;
mod needs;
mod retire;

pub(super) use self::{describe::describe, drain::drain, lost::mark_lost, retire::retire};

use tidemill_types::{
    BookieState, ErrorCode, Member, MemberId, MemberRole,
    meta::{Answer, Command, Query, Rejection},
};

use super::{read, unanswered};
use crate::{core::Core, deadline::Deadline, fault::Fault};

/// The bookie with this uuid, as it is now.
async fn by_uuid(core: &Core, uuid: &str, deadline: Deadline) -> Result<Member, Fault> {
    let Ok(id) = uuid.parse::<uuid::Uuid>() else {
        return Err(Fault::invalid("bookie", crate::fault::shown(uuid), "the uuid of a bookie"));
    };
    let id = MemberId(id);
    let found = all(core, deadline).await?.into_iter().find(|m| m.id == id);
    found.ok_or_else(|| unknown(uuid))
}

/// The bookie with this uuid, or the only one of this name that may still come back.
async fn by_uuid_or_name(core: &Core, text: &str, deadline: Deadline) -> Result<Member, Fault> {
    if text.is_empty() {
        return Err(Fault::invalid("bookie", "an empty text", "the uuid or the name of a bookie"));
    }
    if text.parse::<uuid::Uuid>().is_ok() {
        return by_uuid(core, text, deadline).await;
    }
    let present = |m: &Member| !matches!(m.state, BookieState::Lost | BookieState::Retired);
    let mut found: Vec<Member> =
        all(core, deadline).await?.into_iter().filter(|m| m.name == text && present(m)).collect();
    match (found.pop(), found.is_empty()) {
        (Some(m), true) => Ok(m),
        (Some(_), false) => {
            let why = format!("several bookies are named {}", crate::fault::shown(text));
            Err(Fault::field(ErrorCode::InvalidArgument, "bookie", &why, "the uuid of one of them"))
        }
        (None, _) => Err(unknown(text)),
    }
}

fn unknown(text: &str) -> Fault {
    Fault::new(ErrorCode::UnknownBookie, format!("no bookie {} is known", crate::fault::shown(text)))
}

async fn all(core: &Core, deadline: Deadline) -> Result<Vec<Member>, Fault> {
    match read(core, Query::Members, deadline).await? {
        Answer::Members(all) => Ok(all.into_iter().filter(|m| m.role == MemberRole::Bookie).collect()),
        _ => Err(Fault::internal("read the members", "an answer of another kind")),
    }
}

/// Asks the quorum for another state of the bookie.
async fn set_state(
    core: &Core,
    bookie: &Member,
    state: BookieState,
    deadline: Deadline,
) -> Result<Result<(), Rejection>, Fault> {
    let command = Command::SetMemberState { member: bookie.id, state, restarting: false };
    let reply = deadline.bound(core.client.propose(command)).await.map_err(|_| Fault::deadline_unknown())?;
    let reply = reply.map_err(|e| unanswered(&format!("bookie {}", bookie.name), &e))?;
    Ok(reply.map(|_| ()))
}

/// The bookie is in a state from which it does not get where the caller wants it.
fn wrong_state(bookie: &Member, why: impl std::fmt::Display) -> Fault {
    Fault::new(ErrorCode::WrongState, format!("bookie {} ({}): {why}", bookie.name, bookie.id))
}
