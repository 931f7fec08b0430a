//! `PurgeTopics`: the end of a tombstone.

use tidemill_types::meta::{Change, ControlReply, Rejection, TombstoneRef};

use crate::State;
use crate::reject::conflict;

impl State {
    pub(crate) fn purge_topics(&mut self, refs: &[TombstoneRef], out: &mut Vec<Change>) -> ControlReply {
        ControlReply::Each(refs.iter().map(|r| self.purge_topic(*r, out)).collect())
    }

    /// That two ticks at least 10 min apart were past the deadline, with no jump between, is what the leader says by sending
    /// this with `due`; what can be checked here is checked again.
    fn purge_topic(&mut self, r: TombstoneRef, out: &mut Vec<Change>) -> Result<(), Rejection> {
        let (_, tombstone) = self.find_tombstone(r)?;
        if r.due && self.counters.wall_ms < tombstone.purge_at_ms {
            return Err(conflict(format_args!("its time comes at {} ms", tombstone.purge_at_ms)));
        }
        self.remove_topic(r.topic, out)
    }
}
