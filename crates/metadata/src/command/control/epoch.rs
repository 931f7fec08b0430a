//! The operator epoch: an operator that lost its lead can do nothing here.

use tidemill_types::OperatorEpoch;
use tidemill_types::meta::{ControlReply, Rejection};

use crate::State;
use crate::limits::MAX_NAME_LEN;
use crate::reject::{conflict, invalid};

impl State {
    pub(crate) fn acquire_operator_epoch(&mut self, holder: &str) -> Result<ControlReply, Rejection> {
        if !(1..=MAX_NAME_LEN).contains(&holder.len()) {
            return Err(invalid("holder", format_args!("1 to {MAX_NAME_LEN} bytes")));
        }
        let next = self.operator.epoch.checked_add(1).ok_or_else(|| conflict("epochs are used up"))?;
        self.operator = OperatorEpoch { epoch: next, holder: holder.to_owned() };
        Ok(ControlReply::Epoch(self.operator.clone()))
    }

    /// Any other epoch than the current one is refused: a later one was never handed out by this state.
    pub(crate) fn check_epoch(&self, epoch: Option<u64>) -> Result<(), Rejection> {
        match epoch {
            Some(named) if named != self.operator.epoch => Err(Rejection::StaleOperatorEpoch {
                current: self.operator.epoch,
                holder: self.operator.holder.clone(),
            }),
            _ => Ok(()),
        }
    }
}
