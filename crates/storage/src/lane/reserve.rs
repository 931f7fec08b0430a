//! Room that is kept for what must get through on a full disk: fences, LACs, collections, recovery adds.
//!
//! The reserve is a preallocated file beside the segments. When no ordinary segment can be made any more, the next of those
//! operations turns it into one; plain adds never do. What is left of the disk then becomes the next reserve, so that also the
//! tenth restart of a full bookie can write its fences, and a collection can free the disk again.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use tidemill_runtime::io::{Disk, File, OpenMode, Space, TEMP_SUFFIX};

use super::core::Core;
use crate::{format::BLOCK, shared::Shared};

/// Name of the file in a lane folder.
const NAME: &str = "reserve";
/// A smaller one is not worth a file, bytes: header, some groups, index and footer.
pub(crate) const LEAST: u64 = 64 << 10;

/// Whom a new segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Plain adds: they leave the reserve alone.
    Plain,
    /// What must get through.
    Urgent,
}

fn full(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, what.to_owned())
}

/// Bytes that stay free beside segments and reserve: cookies and control files are replaced by a second copy.
pub(crate) fn margin(shared: &Shared) -> u64 {
    (shared.config.segment_bytes / 16).min(1 << 20)
}

impl Core {
    fn reserve_path(&self) -> PathBuf {
        self.lane.dir.join(NAME)
    }

    fn set_reserve(&mut self, bytes: u64) {
        self.reserve = bytes;
        self.lane.reserve_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Takes over the reserve of an earlier boot, or makes one before any segment takes the room.
    pub(crate) fn find_reserve(&mut self, shared: &Shared) {
        let len = shared.disk.open(&self.reserve_path(), OpenMode::Read).and_then(|f| f.len());
        self.set_reserve(len.unwrap_or(0));
        self.keep_reserve(shared);
    }

    /// Makes the reserve as large as it shall be, or as there is room for.
    pub(super) fn keep_reserve(&mut self, shared: &Shared) {
        let want = shared.config.reserve_bytes.min(shared.config.segment_bytes);
        if self.reserve >= want {
            return;
        }
        let Ok(space) = shared.disk.space(&self.lane.dir) else { return };
        let size = want.min(space.free.saturating_sub(margin(shared)) / BLOCK * BLOCK);
        if size < LEAST || size <= self.reserve {
            return;
        }
        let path = self.reserve_path();
        let mut temp = path.as_os_str().to_owned();
        temp.push(TEMP_SUFFIX);
        let temp = PathBuf::from(temp);
        // Neither name nor length need be durable: what a crash loses is made again.
        let made = replace(&*shared.disk, &temp, &path, size);
        match made {
            Ok(()) => self.set_reserve(size),
            Err(error) => {
                tracing::warn!(%error, size, path = %path.display(), "the reserve cannot be made");
            }
        }
    }

    /// Whether a segment of the usual size can be made.
    pub(super) fn room_for_segment(&self, shared: &Shared) -> bool {
        // A file system that does not tell is asked by trying.
        shared
            .disk
            .space(&self.lane.dir)
            .map_or(true, |s| s.free >= shared.config.segment_bytes + margin(shared))
    }

    /// A file for a new segment: its bytes, and whether it is the reserve.
    pub(super) fn segment_file(
        &mut self,
        shared: &Shared,
        path: &Path,
        need: Need,
    ) -> io::Result<(Arc<dyn File>, u64, bool)> {
        let size = shared.config.segment_bytes;
        // Past the last mark nothing new is opened at full size, for whomever.
        let past = self.lane.used_ratio() >= shared.config.space.recovery_until;
        let made = if self.room_for_segment(shared) && !(past && need == Need::Urgent) {
            shared.disk.create(path, size)
        } else {
            Err(full("no room for another segment"))
        };
        match made {
            Ok(file) => Ok((file, size, false)),
            Err(_) if need == Need::Urgent && self.reserve > 0 => self.take_reserve(shared, path),
            Err(e) => Err(e),
        }
    }

    fn take_reserve(&mut self, shared: &Shared, path: &Path) -> io::Result<(Arc<dyn File>, u64, bool)> {
        let from = self.reserve_path();
        let size = self.reserve;
        self.set_reserve(0);
        shared.disk.rename(&from, path)?;
        let file = shared.disk.open(path, OpenMode::ReadWrite)?;
        tracing::warn!(size, path = %path.display(), "the disk is full: the reserve becomes a segment");
        Ok((file, size, true))
    }

    /// A file for a rewritten segment. When there is no room it gets the reserve's: rewriting is what makes room again, and
    /// the reserve is made anew from it.
    pub(crate) fn copy_file(&mut self, shared: &Shared, path: &Path, size: u64) -> io::Result<Arc<dyn File>> {
        let is_short = |s: io::Result<Space>| s.is_ok_and(|s| s.free < size + margin(shared));
        if self.reserve > 0 && is_short(shared.disk.space(&self.lane.dir)) {
            shared.disk.remove(&self.reserve_path())?;
            self.set_reserve(0);
        }
        shared.disk.create(path, size)
    }

    /// Bytes that fences, collections and recovery adds can still get.
    pub(super) fn urgent_room(&self) -> u64 {
        let open = self.active.as_ref().filter(|a| !a.must_seal).map_or(0, |a| {
            a.segment.len.load(Ordering::Relaxed).saturating_sub(a.data_end + self.index_bytes(a.rows, 0))
        });
        open + self.reserve
    }
}

fn replace(disk: &dyn Disk, temp: &Path, path: &Path, size: u64) -> io::Result<()> {
    match disk.remove(temp) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    disk.create(temp, size)?;
    disk.rename(temp, path)
}
