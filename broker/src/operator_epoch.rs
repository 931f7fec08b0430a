//! The operator epoch that a call carries, and the check for calls that are no command.

use tidemill_types::meta::{ControlAction, ControlAnswer, ControlCommand, ControlQuery, Rejection};
use tonic::metadata::MetadataMap;

use crate::{
    core::Core,
    deadline::Deadline,
    fault::{Fault, rejected, shown},
};

/// gRPC metadata with the epoch, decimal.
const HEADER: &str = "tidemill-operator-epoch";

/// The epoch in a call's metadata.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is no number.
pub(crate) fn of(metadata: &MetadataMap) -> Result<Option<u64>, Fault> {
    let Some(value) = metadata.get(HEADER) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let epoch = text.parse().map_err(|_| Fault::invalid(HEADER, shown(text), "a number"))?;
    Ok(Some(epoch))
}

/// A command of the control service under the caller's epoch: checked where it is applied.
pub(crate) fn under(epoch: Option<u64>, action: ControlAction) -> ControlCommand {
    ControlCommand { epoch, action }
}

/// Refuses a call whose epoch is not the current one, as of a moment after the call came.
///
/// # Errors
/// `STALE_OPERATOR_EPOCH`; no answer of the quorum.
pub(crate) async fn check(core: &Core, epoch: Option<u64>, deadline: Deadline) -> Result<(), Fault> {
    let Some(epoch) = epoch else { return Ok(()) };
    let query = core.client.control_query(ControlQuery::Operator);
    let answer = deadline.bound(query).await.map_err(|_| Fault::deadline())?;
    match answer {
        Ok((ControlAnswer::Operator(now), _)) if now.epoch == epoch => Ok(()),
        Ok((ControlAnswer::Operator(now), _)) => {
            let stale = Rejection::StaleOperatorEpoch { current: now.epoch, holder: now.holder };
            Err(rejected("check the operator epoch", &stale))
        }
        Ok(_) => Err(Fault::internal("read the operator epoch", "an answer of another kind")),
        Err(e) => Err(Fault::new(e.code(), format!("read the operator epoch: {e}"))),
    }
}
