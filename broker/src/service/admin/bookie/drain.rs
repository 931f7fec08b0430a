//! `DrainBookie`: a wish. Owners roll the open ledgers of a draining bookie, the auditor moves the rest away.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::BookieState;

use super::{by_uuid_or_name, needs, set_state, wrong_state};
use crate::{core::Core, deadline::Deadline, fault::Fault};

pub(in super::super) async fn drain(
    core: &Arc<Core>,
    request: v1::DrainBookieRequest,
    deadline: Deadline,
) -> Result<v1::DrainBookieResponse, Fault> {
    use BookieState::{Draining, Limbo, Lost, Retired, Ro, Rw};
    let mut bookie = by_uuid_or_name(core, &request.bookie, deadline).await?;
    let wished = match (bookie.state, request.undo) {
        (Draining, false) | (Rw | Ro | Limbo, true) => None,
        (Rw | Ro, false) => Some(Draining),
        (Draining, true) => Some(Rw),
        (Limbo, false) => {
            return Err(wrong_state(&bookie, "it is in limbo and is repaired first; drain it afterwards"));
        }
        (Lost | Retired, _) => {
            return Err(wrong_state(
                &bookie,
                format_args!("it is {:?}: there is nothing to drain", bookie.state),
            ));
        }
    };
    if let Some(state) = wished {
        if let Err(rejection) = set_state(core, &bookie, state, deadline).await? {
            return Err(wrong_state(&bookie, rejection));
        }
        bookie.state = state;
    }
    Ok(v1::DrainBookieResponse { bookie: Some(needs::of(core, &bookie, deadline).await?) })
}
