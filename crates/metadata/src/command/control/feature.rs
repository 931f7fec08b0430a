//! `RaiseFeatureLevel`.

use tidemill_types::meta::{ControlReply, Rejection};

use crate::State;
use crate::reject::{conflict, invalid};
use crate::state::FEATURE_LEVEL;

impl State {
    /// The leader asked every voter before. A member that does not know the level must not get here: it would go on with
    /// another state than the rest (the log's reader stops it, see [`crate::unknown_level`]).
    pub(crate) fn raise_feature_level(&mut self, level: u32) -> Result<ControlReply, Rejection> {
        if level > FEATURE_LEVEL {
            return Err(invalid("level", format_args!("at most {FEATURE_LEVEL} is known here")));
        }
        let have = self.counters.feature_level;
        if level < have {
            return Err(conflict(format_args!("the feature level is {have} and never goes down")));
        }
        self.counters.feature_level = level;
        Ok(ControlReply::FeatureLevel(level))
    }
}
