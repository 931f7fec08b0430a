//! `TombstoneTopics` and `RestoreTopics`.

use tidemill_types::meta::{Change, ControlReply, Rejection, TombstoneRef, TopicDeletion, TopicTombstoned};
use tidemill_types::{Tombstone, TopicControl};

use crate::State;
use crate::limits::MAX_PURGE_AFTER_MS;
use crate::reject::{conflict, invalid, not_found};

impl State {
    pub(crate) fn tombstone_topics(&mut self, all: &[TopicDeletion], out: &mut Vec<Change>) -> ControlReply {
        ControlReply::Tombstoned(all.iter().map(|d| self.tombstone_topic(d, out)).collect())
    }

    /// Rule 2: a deletion leaves the data where it is; rule 8: only the holder's deletion counts.
    fn tombstone_topic(
        &mut self,
        d: &TopicDeletion,
        out: &mut Vec<Change>,
    ) -> Result<TopicTombstoned, Rejection> {
        if !(0..=MAX_PURGE_AFTER_MS).contains(&d.purge_after_ms) {
            return Err(invalid("purge_after_ms", format_args!("0 to {MAX_PURGE_AFTER_MS}")));
        }
        let Some(topic) = self.names.get(&d.name).and_then(|id| self.topic(*id)).cloned() else {
            return Ok(TopicTombstoned::Absent);
        };
        if topic.name.is_internal() {
            return Err(invalid("name", "names that begin with two underscores belong to the system"));
        }
        let control = self.control_or_new(topic.id);
        if let Some(t) = &control.tombstone {
            return Ok(if t.former.as_ref().map(|c| &c.uid) == d.uid.as_ref() {
                TopicTombstoned::Tombstone { topic, control, news: false }
            } else {
                TopicTombstoned::NotHolder(None)
            });
        }
        if control.claim.as_ref().map(|c| &c.uid) != d.uid.as_ref() {
            return Ok(TopicTombstoned::NotHolder(control.claim));
        }
        // Without a first tick its time would count from 1970.
        let now = self.counters.wall_ms;
        if now == 0 {
            return Err(conflict("quorum time is not known yet"));
        }
        let tombstone = Tombstone {
            deleted_ms: now,
            purge_at_ms: now.saturating_add(d.purge_after_ms),
            former: control.claim.clone(),
        };
        let control = TopicControl { claim: None, tombstone: Some(tombstone), ..control };
        let control = self.put_control(control, out);
        Ok(TopicTombstoned::Tombstone { topic, control, news: true })
    }

    /// The named tombstone's control record, as long as it is that very one.
    pub(crate) fn find_tombstone(&self, r: TombstoneRef) -> Result<(&TopicControl, &Tombstone), Rejection> {
        let control = self.topic_control(r.topic).ok_or_else(|| not_found("tombstone of topic", r.topic))?;
        if control.version != r.version {
            return Err(Rejection::VersionMismatch { current: control.version });
        }
        match &control.tombstone {
            Some(t) => Ok((control, t)),
            None => Err(not_found("tombstone of topic", r.topic)),
        }
    }

    pub(crate) fn restore_topics(&mut self, refs: &[TombstoneRef], out: &mut Vec<Change>) -> ControlReply {
        ControlReply::Each(refs.iter().map(|r| self.restore_topic(*r, out)).collect())
    }

    fn restore_topic(&mut self, r: TombstoneRef, out: &mut Vec<Change>) -> Result<(), Rejection> {
        let (control, tombstone) = self.find_tombstone(r)?;
        let back = TopicControl { claim: tombstone.former.clone(), tombstone: None, ..control.clone() };
        self.put_control(back, out);
        Ok(())
    }
}
