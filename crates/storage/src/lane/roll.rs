//! From one segment to the next: seal the old one, only then open the new one, so that at most the last one has no footer (R18).

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};

use tidemill_runtime::io::DurableError;
use uuid::Uuid;

use super::{
    core::{ActiveSegment, Core},
    reserve::Need,
};
use crate::{
    error::Poison,
    format::{
        BLOCK, block_up,
        control::{Listed, segment_name},
        group::GROUP_HEAD,
        header::SegmentHeader,
        index::{ROWS_PER_PAGE, RUN},
    },
    segment::Segment,
    shared::Shared,
};

/// Why there is no segment to write to.
#[derive(Debug)]
pub(crate) enum RollError {
    /// No room, or a write failed; tried again later. Nothing is lost.
    Stalled,
    /// A sync failed (R17).
    Fatal(Poison),
}

impl From<Poison> for RollError {
    fn from(p: Poison) -> Self {
        Self::Fatal(p)
    }
}

impl Core {
    /// Bytes that index, directory, checkpoint and footer of the active segment take, with `more` further records.
    pub(super) fn index_bytes(&self, rows: u64, more: u64) -> u64 {
        (rows + more).div_ceil(u64::from(ROWS_PER_PAGE)) * BLOCK
            + (self.touched.len() as u64 + more) * RUN as u64
            + 3 * BLOCK
    }

    /// Makes sure that a group of about `bytes` with `records` records fits into the active segment, with room for its index.
    pub(super) fn make_room(
        &mut self,
        shared: &Shared,
        bytes: u64,
        records: u64,
        need: Need,
    ) -> Result<(), RollError> {
        if let Some(a) = &self.active {
            let group = block_up(GROUP_HEAD as u64 + bytes);
            let index = self.index_bytes(a.rows, records);
            // A group that would not even fit into an empty segment goes into an empty one and makes it longer.
            let empty = !a.is_reserve && a.rows == 0 && a.data_end <= 4 * BLOCK;
            let fits = empty || a.data_end + group + index <= a.segment.len.load(Ordering::Relaxed);
            let open_to = need == Need::Urgent || !a.is_reserve;
            if !a.must_seal && fits && open_to {
                return Ok(());
            }
            // What is left in it stays for what must get through: it is sealed when there is another one to go on in.
            if !a.must_seal && need == Need::Plain && !self.room_for_segment(shared) {
                if let Some(a) = &mut self.active {
                    a.is_full = true;
                }
                let error = io::Error::from(io::ErrorKind::StorageFull);
                return Err(self.stall(shared, "no room for another segment", &error));
            }
        }
        self.roll(shared, need)
    }

    /// Seals the active segment, if any, and opens a new one.
    pub(crate) fn roll(&mut self, shared: &Shared, need: Need) -> Result<(), RollError> {
        if self.active.is_some() {
            self.seal(shared)?;
        }
        let first_group = self.next_group;
        let (segment, is_reserve) = self.create_segment(shared, first_group, need)?;
        self.lane.segments.write().insert(segment.number, Arc::clone(&segment));
        self.active = Some(ActiveSegment {
            segment,
            data_end: BLOCK,
            last_group: first_group - 1,
            rows: 0,
            must_seal: false,
            is_reserve,
            is_full: false,
        });
        if is_reserve {
            self.keep_reserve(shared);
        }
        Ok(())
    }

    /// A stall for want of room makes the lane full; other errors are tried again with the next operation.
    pub(super) fn stall(&mut self, shared: &Shared, what: &str, error: &io::Error) -> RollError {
        tracing::error!(%error, what, dir = %self.lane.dir.display(), "the lane takes nothing for now");
        if error.kind() == io::ErrorKind::StorageFull {
            self.out_of_space(shared);
        }
        RollError::Stalled
    }

    fn create_segment(
        &mut self,
        shared: &Shared,
        first_group: u64,
        need: Need,
    ) -> Result<(Arc<Segment>, bool), RollError> {
        let number = self.lane.control.lock().allocate();
        let uuid: Uuid = (shared.config.new_uuid)();
        let path = self.lane.dir.join(segment_name(number));
        let (file, size, is_reserve) =
            self.segment_file(shared, &path, need).map_err(|e| self.stall(shared, "new segment", &e))?;
        let header = SegmentHeader { lane: self.lane.uuid, uuid, number, rewritten: false, first_group };
        if let Err(error) = file.write_blocks_at(&[&header.encode()], 0) {
            // Not listed: whether the removal gets through does not matter, boot removes it too.
            let _ = shared.disk.remove(&path);
            return Err(self.stall(shared, "header of a new segment", &error));
        }
        Self::count_written(shared, BLOCK);
        file.sync_data().map_err(|e| shared.poison("sync", &path, &e))?;
        shared.disk.sync_dir(&self.lane.dir).map_err(|e| shared.poison("sync", &self.lane.dir, &e))?;
        // Listed before the first group: a listed segment that is missing is a loss, so it must exist durably first.
        let mut control = self.lane.control.lock();
        let listed = Listed { uuid, sealed: false, rewritten: false };
        let changed = control.change(&*shared.disk, |c| {
            c.segments.insert(number, listed);
        });
        let control_path = control.path().to_path_buf();
        drop(control);
        match changed {
            Ok(()) => {}
            Err(DurableError::Untouched(error)) => {
                let _ = shared.disk.remove(&path);
                return Err(self.stall(shared, "control file", &error));
            }
            Err(DurableError::Unknown(error)) => {
                return Err(shared.poison("writing the control file", &control_path, &error).into());
            }
        }
        let segment = Segment {
            lane: self.lane.index,
            number,
            uuid,
            rewritten: false,
            path,
            file,
            first_group,
            len: AtomicU64::new(size),
            live: AtomicI64::new(0),
            keep: AtomicBool::new(false),
            footer: OnceLock::new(),
        };
        Ok((Arc::new(segment), is_reserve))
    }
}
