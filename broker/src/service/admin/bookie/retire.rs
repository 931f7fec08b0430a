//! `RetireBookie`: one-way, and only when nothing names the bookie. The quorum counts; this only tells what is in the way.

use std::sync::Arc;

use tidemill_proto::v1;
use tidemill_types::BookieState;

use super::{by_uuid, needs, set_state, wrong_state};
use crate::{core::Core, deadline::Deadline, fault::Fault};

pub(in super::super) async fn retire(
    core: &Arc<Core>,
    request: v1::RetireBookieRequest,
    deadline: Deadline,
) -> Result<v1::RetireBookieResponse, Fault> {
    let mut bookie = by_uuid(core, &request.bookie, deadline).await?;
    let retired = match bookie.state {
        BookieState::Retired => true,
        BookieState::Draining | BookieState::Lost => {
            set_state(core, &bookie, BookieState::Retired, deadline).await?.is_ok()
        }
        state => {
            let why = format!("it is {state:?}; drain it or declare it lost first");
            return Err(wrong_state(&bookie, why));
        }
    };
    if retired {
        bookie.state = BookieState::Retired;
    }
    let needs = needs::of(core, &bookie, deadline).await?;
    Ok(v1::RetireBookieResponse { retired, bookie: Some(needs) })
}
