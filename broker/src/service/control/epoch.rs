//! `AcquireOperatorEpoch`, `GetOperatorEpoch`.

use tidemill_proto::v1;
use tidemill_types::meta::{ControlAction, ControlAnswer, ControlQuery, ControlReply};

use super::{Caller, other};
use crate::fault::Fault;

pub(super) async fn acquire(
    caller: Caller<'_>,
    r: v1::AcquireOperatorEpochRequest,
) -> Result<v1::AcquireOperatorEpochResponse, Fault> {
    let what = "acquire the operator epoch";
    // Whoever asks for a new epoch has none yet; one that it carries is checked all the same.
    match caller.command(what, ControlAction::AcquireOperatorEpoch { holder: r.holder }).await? {
        ControlReply::Epoch(e) => Ok(v1::AcquireOperatorEpochResponse { epoch: e.epoch }),
        _ => Err(other(what)),
    }
}

pub(super) async fn get(
    caller: Caller<'_>,
    _: v1::GetOperatorEpochRequest,
) -> Result<v1::GetOperatorEpochResponse, Fault> {
    let what = "read the operator epoch";
    match caller.query(what, ControlQuery::Operator).await? {
        (ControlAnswer::Operator(e), _) => {
            Ok(v1::GetOperatorEpochResponse { epoch: e.epoch, holder: e.holder })
        }
        _ => Err(other(what)),
    }
}
