//! `AnnounceRestart` (R28).

use tidemill_proto::v1;
use tidemill_types::{
    MemberId, MemberRole,
    meta::{ControlAction, ControlReply},
};

use super::{Caller, other};
use crate::fault::{Fault, shown};

/// A member's uuid from a request.
pub(super) fn member(text: &str) -> Result<MemberId, Fault> {
    text.parse().map_err(|_| Fault::invalid("member", shown(text), "the uuid of a member"))
}

pub(super) async fn announce(
    caller: Caller<'_>,
    r: v1::AnnounceRestartRequest,
) -> Result<v1::AnnounceRestartResponse, Fault> {
    let member = member(&r.member)?;
    let known = caller.core.mirror.table().member(member).map(|m| m.role);
    if known != Some(MemberRole::Bookie) {
        return Err(Fault::invalid("member", member, "the uuid of a bookie that the quorum knows"));
    }
    let what = "announce a restart";
    let action = ControlAction::AnnounceRestart { member, restarting: !r.cancel };
    match caller.command(what, action).await? {
        ControlReply::Done => Ok(v1::AnnounceRestartResponse {}),
        _ => Err(other(what)),
    }
}
