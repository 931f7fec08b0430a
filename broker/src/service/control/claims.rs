//! `ReleaseClaims`.

use tidemill_proto::v1;
use tidemill_types::meta::{ClaimRelease, ControlAction, ControlReply};

use super::{Caller, MAX_ELEMENTS, other};
use crate::{fault::Fault, route::topic_name};

pub(super) async fn release(
    caller: Caller<'_>,
    r: v1::ReleaseClaimsRequest,
) -> Result<v1::ReleaseClaimsResponse, Fault> {
    let what = "release claims";
    if !(1..=MAX_ELEMENTS).contains(&r.claims.len()) {
        return Err(Fault::invalid("claims", r.claims.len(), &format!("1 to {MAX_ELEMENTS}")));
    }
    let mut claims = Vec::with_capacity(r.claims.len());
    for c in r.claims {
        if c.claim_uid.is_empty() {
            return Err(Fault::invalid("claim_uid", "an empty one", "the uid that holds the claim"));
        }
        claims.push(ClaimRelease { name: topic_name(&c.name)?, uid: c.claim_uid });
    }
    match caller.command(what, ControlAction::ReleaseClaims(claims)).await? {
        ControlReply::Released(released) => Ok(v1::ReleaseClaimsResponse { released }),
        _ => Err(other(what)),
    }
}
