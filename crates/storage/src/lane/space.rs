//! When a disk counts as full.

use std::{sync::atomic::Ordering, time::Duration};

use super::{Lane, core::Core};
use crate::{report::SpaceState, shared::Shared};

/// How often the free space is looked at while the lane works or waits for room.
const EVERY: Duration = Duration::from_secs(1);

impl Lane {
    pub(crate) fn space_state(&self) -> SpaceState {
        match self.space.load(Ordering::Relaxed) {
            0 => SpaceState::ReadWrite,
            1 => SpaceState::ReadOnly,
            _ => SpaceState::Full,
        }
    }

    pub(crate) fn set_space_state(&self, state: SpaceState) {
        self.space.store(state as u8, Ordering::Relaxed);
    }
}

impl Core {
    pub(super) fn is_short_of_space(&self) -> bool {
        self.lane.space_state() != SpaceState::ReadWrite
    }

    /// Looks at the file system. Between the two marks the state stays what it was, so that it does not flap.
    pub(crate) fn look_at_space(&mut self, shared: &Shared, now: Duration) {
        self.space_at = now + EVERY;
        let space = match shared.disk.space(&self.lane.dir) {
            Ok(s) => s,
            Err(error) => {
                tracing::warn!(%error, dir = %self.lane.dir.display(), "free space cannot be read");
                return;
            }
        };
        self.lane.free_bytes.store(space.free, Ordering::Relaxed);
        self.lane.total_bytes.store(space.total, Ordering::Relaxed);
        let used = space.used_ratio();
        let limits = &shared.config.space;
        let before = self.lane.space_state();
        // Without an open segment the next add needs room for one, whatever the shares say.
        let no_room =
            self.active.as_ref().is_none_or(|a| a.must_seal) && space.free < shared.config.segment_bytes;
        let state = if used >= limits.recovery_until || no_room {
            SpaceState::Full
        } else if used >= limits.read_only_at {
            SpaceState::ReadOnly
        } else if used < limits.read_write_below {
            SpaceState::ReadWrite
        } else {
            before.min(SpaceState::ReadOnly)
        };
        if state != before {
            tracing::warn!(?before, ?state, used, dir = %self.lane.dir.display(), "space of the lane");
        }
        self.lane.set_space_state(state);
    }

    /// The disk refused a write for want of room: nothing more is taken until the space is looked at again.
    pub(super) fn out_of_space(&mut self, shared: &Shared) {
        self.lane.set_space_state(SpaceState::Full);
        self.space_at = shared.config.clock.boottime() + EVERY;
    }
}
