//! The disk behind a trait: what a storage engine needs of a file system, a real implementation and a simulated one.
//!
//! Every call blocks until it is done; callers that live in an async runtime go through its blocking pool. In simulation
//! the disk runs inline.
//!
//! # Contract
//!
//! - Bytes written are durable only after [`File::sync_data`] returned `Ok` on a handle of that file. Before that a crash may keep any
//!   subset of them, sector by sector.
//! - A file that was created, renamed or removed is so durably only after [`Disk::sync_dir`] of its folder returned.
//! - An error of `sync_data` or `sync_dir` says nothing about what is durable. The caller MUST NOT sync the same handle again and take an
//!   `Ok` for success: the kernel may have dropped the dirty pages (R17).

mod direct;
mod durable;
mod real;
mod sim;
#[cfg(test)]
mod tests;

use std::{
    fmt, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use durable::{DurableError, TEMP_SUFFIX, read_all, replace_durably, write_durably};
pub use real::RealDisk;
pub use sim::{CrashPlan, Fault, OpKind, SimDisk};

/// Bytes of a block, of which [`File::write_blocks_at`] writes whole ones: no disk in use has larger logical blocks.
pub const BLOCK: u64 = 4_096;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reads only.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// One item of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirItem {
    /// Name without the folder.
    pub name: String,
    /// Bytes, 0 for a folder.
    pub len: u64,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// Space of the file system that holds a folder, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// What this process may still use.
    pub free: u64,
}

impl Space {
    /// Used part, 0.0 to 1.0 (1.0 for a file system of size 0).
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio that is compared with a percentage")]
    pub fn used_ratio(&self) -> f64 {
        if self.total == 0 {
            return 1.0;
        }
        self.total.saturating_sub(self.free) as f64 / self.total as f64
    }
}

/// An exclusive lock on a file; dropping it releases the lock.
pub trait Lock: Send + Sync + fmt::Debug {}

/// An open file. All methods may be called from several threads.
pub trait File: Send + Sync + fmt::Debug {
    /// Reads at `offset` until `buf` is full or the file ends; returns how many bytes were read.
    ///
    /// # Errors
    /// Any I/O error.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`. On an error any part of them may have been written.
    ///
    /// # Errors
    /// Any I/O error, `StorageFull` when the disk is full.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes all of `parts`, one behind the other, from `offset` on. As [`Self::write_at`] with all bytes in one piece.
    ///
    /// # Errors
    /// As [`Self::write_at`].
    fn write_parts_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        self.write_at(&parts.concat(), offset)
    }

    /// As [`Self::write_parts_at`], for what is synced at once and seldom read soon: `offset` and the length of all parts together
    /// are multiples of [`BLOCK`]. May go past the system's cache.
    ///
    /// # Errors
    /// As [`Self::write_at`]; `InvalidInput` for anything but whole blocks.
    fn write_blocks_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        whole_blocks(parts, offset)?;
        self.write_parts_at(parts, offset)
    }

    /// A hint that these bytes are read soon: they may be brought in meanwhile. Never waits for the disk, and says nothing of what
    /// the read will find.
    fn will_need(&self, _offset: u64, _len: u64) {}

    /// Makes everything written before durable, the file's length included.
    ///
    /// # Errors
    /// Any I/O error; see the module's contract.
    fn sync_data(&self) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// Any I/O error.
    fn len(&self) -> io::Result<u64>;

    /// Whether the length is 0.
    ///
    /// # Errors
    /// Any I/O error.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The first stretch at or behind `from` that may hold bytes other than zero, up to the next one that holds none: `None` when
    /// there is none up to the end of the file. What lies outside of the stretches was never written, or was cut off, and
    /// MUST read as zeros; what lies inside may be zeros too. A file system that does not tell answers everything.
    ///
    /// Data that a crash left unwritten inside preallocated space is told as it is read: as nothing.
    ///
    /// # Errors
    /// Any I/O error.
    fn next_data(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        let len = self.len()?;
        Ok((from < len).then_some(from..len))
    }

    /// Cuts the file off at `len`, or extends it with zeros. Durable after the next `sync_data`.
    ///
    /// # Errors
    /// Any I/O error.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reads exactly `buf.len()` bytes at `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before, or any I/O error.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let n = self.read_at(buf, offset)?;
        if n == buf.len() {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{n} of {} bytes at offset {offset}", buf.len()),
            ))
        }
    }
}

/// A file system.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Makes a folder and its parents; an existing one is fine.
    ///
    /// # Errors
    /// Any I/O error.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates a file that must not exist, `preallocate` bytes long, reading as zeros, its space reserved.
    /// The name is durable only after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// `AlreadyExists`; `StorageFull` when there is no room (then no file is left behind); any other I/O error.
    fn create(&self, path: &Path, preallocate: u64) -> io::Result<Arc<dyn File>>;

    /// Opens a file that exists.
    ///
    /// # Errors
    /// `NotFound`, or any other I/O error.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// The items of a folder, sorted by name.
    ///
    /// # Errors
    /// `NotFound`, or any other I/O error.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirItem>>;

    /// Renames a file, replacing a file of the new name.
    ///
    /// # Errors
    /// Any I/O error.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes creations, renames and removals in a folder durable.
    ///
    /// # Errors
    /// Any I/O error; see the module's contract.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Removes a file. Open handles go on reading it.
    ///
    /// # Errors
    /// `NotFound`, or any other I/O error.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Space of the file system that holds `dir`.
    ///
    /// # Errors
    /// Any I/O error.
    fn space(&self, dir: &Path) -> io::Result<Space>;

    /// Takes an exclusive lock on a file, which is created when missing. Does not wait.
    ///
    /// # Errors
    /// `WouldBlock` when somebody holds it, or any other I/O error.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
}

fn whole_blocks(parts: &[&[u8]], offset: u64) -> io::Result<()> {
    let len: u64 = parts.iter().map(|p| p.len() as u64).sum();
    if offset.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK) {
        return Ok(());
    }
    let why = format!("{len} bytes at {offset} are no whole blocks of {BLOCK}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// The folder of a path; the path itself when it has none.
fn parent(path: &Path) -> PathBuf {
    path.parent().map_or_else(|| path.to_path_buf(), Path::to_path_buf)
}
