//! `Control`: declared wishes of operators, judged under their epoch.

mod apply_topics;
mod claims;
mod epoch;
mod feature;
mod purge;
mod restart;
mod tombstone;

use tidemill_types::meta::{Change, ControlAction, ControlCommand, ControlReply, Rejection};
use tidemill_types::{TopicControl, TopicId, Version};

use crate::State;
use crate::limits::MAX_BATCH;
use crate::reject::invalid;

/// Feature level from which on control commands are known.
pub(crate) const CONTROL_LEVEL: u32 = 3;

fn batch_len(action: &ControlAction) -> usize {
    match action {
        ControlAction::ApplyTopics(v) => v.len(),
        ControlAction::TombstoneTopics(v) => v.len(),
        ControlAction::RestoreTopics(v) | ControlAction::PurgeTopics(v) => v.len(),
        ControlAction::ReleaseClaims(v) => v.len(),
        _ => 0,
    }
}

impl State {
    pub(crate) fn control(
        &mut self,
        c: &ControlCommand,
        out: &mut Vec<Change>,
    ) -> Result<ControlReply, Rejection> {
        if let ControlAction::RaiseFeatureLevel { level } = c.action {
            self.check_epoch(c.epoch)?;
            return self.raise_feature_level(level);
        }
        let level = self.counters.feature_level;
        if level < CONTROL_LEVEL {
            return Err(Rejection::FeatureLevel { needed: CONTROL_LEVEL, level });
        }
        self.check_epoch(c.epoch)?;
        if batch_len(&c.action) > MAX_BATCH {
            return Err(invalid("elements", format_args!("at most {MAX_BATCH} per command")));
        }
        match &c.action {
            ControlAction::AcquireOperatorEpoch { holder } => self.acquire_operator_epoch(holder),
            ControlAction::ApplyTopics(wishes) => Ok(self.apply_topics(wishes, out)),
            ControlAction::TombstoneTopics(deletions) => Ok(self.tombstone_topics(deletions, out)),
            ControlAction::RestoreTopics(refs) => Ok(self.restore_topics(refs, out)),
            ControlAction::PurgeTopics(refs) => Ok(self.purge_topics(refs, out)),
            ControlAction::ReleaseClaims(releases) => Ok(self.release_claims(releases, out)),
            ControlAction::AnnounceRestart { member, restarting } => {
                self.announce_restart(*member, *restarting, out)
            }
            ControlAction::RaiseFeatureLevel { level } => self.raise_feature_level(*level),
            ControlAction::CheckEpoch => Ok(ControlReply::Done),
        }
    }

    /// What a topic's control record is, or would be as its first.
    pub(crate) fn control_or_new(&self, topic: TopicId) -> TopicControl {
        let none = TopicControl { topic, version: Version(0), claim: None, tombstone: None };
        self.topic_control(topic).cloned().unwrap_or(none)
    }
}
