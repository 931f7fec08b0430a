//! When a disk counts as full.

use std::{sync::atomic::Ordering, time::Duration};

use tidemill_runtime::io::Space;

use super::{Lane, core::Core, reserve::LEAST};
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

    /// Used share of the file system, as last looked at.
    pub(super) fn used_ratio(&self) -> f64 {
        let free = self.free_bytes.load(Ordering::Relaxed);
        Space { total: self.total_bytes.load(Ordering::Relaxed), free }.used_ratio()
    }
}

impl Core {
    pub(super) fn is_short_of_space(&self) -> bool {
        self.lane.space_state() != SpaceState::ReadWrite
    }

    /// Looks at the file system. Between the two marks the state stays what it was, so that it does not flap.
    pub(crate) fn look_at_space(&mut self, shared: &Shared, now: Duration) {
        self.space_at = now + EVERY;
        self.keep_reserve(shared);
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
        // Without a segment that is open to it the next add needs room for one, whatever the shares say. Without a reserve nothing
        // is promised to it either: a fence must get through later.
        let closed = self.active.as_ref().is_none_or(|a| a.must_seal || a.is_reserve || a.is_full);
        let no_room = (closed && !self.room_for_segment(shared)) || self.reserve < LEAST;
        let state = if used >= limits.read_only_at || no_room {
            self.shut(shared, used, no_room)
        } else if used < limits.read_write_below {
            SpaceState::ReadWrite
        } else {
            before.min(SpaceState::ReadOnly)
        };
        if state == SpaceState::ReadWrite
            && let Some(a) = self.active.as_mut().filter(|a| a.is_reserve || a.is_full)
        {
            // There is room again: the next group goes on in an ordinary segment.
            a.must_seal = true;
        }
        if state != before {
            tracing::warn!(?before, ?state, used, dir = %self.lane.dir.display(), "space of the lane");
        }
        self.lane.set_space_state(state);
    }

    /// Recovery adds end when no further segment is opened for them and the rest is needed for fences and collections.
    fn shut(&self, shared: &Shared, used: f64, no_room: bool) -> SpaceState {
        let last = used >= shared.config.space.recovery_until || no_room;
        let kept = shared.config.reserve_bytes.min(shared.config.segment_bytes) / 2;
        if last && self.urgent_room() < kept { SpaceState::Full } else { SpaceState::ReadOnly }
    }

    /// The disk refused something for want of room: no plain add is taken until the space is looked at again.
    pub(super) fn out_of_space(&mut self, shared: &Shared) {
        self.lane.set_space_state(self.shut(shared, self.lane.used_ratio(), true));
        self.space_at = shared.config.clock.boottime() + EVERY;
    }
}
