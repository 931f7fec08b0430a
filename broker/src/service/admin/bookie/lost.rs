//! `MarkBookieLost`.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::BookieState;

use super::{by_uuid, needs, set_state, wrong_state};
use crate::{core::Core, deadline::Deadline, fault::Fault};

pub(in super::super) async fn mark_lost(
    core: &Arc<Core>,
    request: v1::MarkBookieLostRequest,
    deadline: Deadline,
) -> Result<v1::MarkBookieLostResponse, Fault> {
    let mut bookie = by_uuid(core, &request.bookie, deadline).await?;
    match bookie.state {
        BookieState::Lost => {}
        BookieState::Retired => return Err(wrong_state(&bookie, "it is retired already")),
        _ => {
            if let Err(rejection) = set_state(core, &bookie, BookieState::Lost, deadline).await? {
                return Err(wrong_state(&bookie, rejection));
            }
            bookie.state = BookieState::Lost;
        }
    }
    Ok(v1::MarkBookieLostResponse { bookie: Some(needs::of(core, &bookie, deadline).await?) })
}
