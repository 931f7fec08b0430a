//! Open files and locks of the simulated disk.

use std::{io, ops::Range, path::PathBuf};

use super::{
    super::{File, Lock},
    Hit, OpKind, SimDisk, State,
};

#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    inode: usize,
    boot: u64,
    writable: bool,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, inode: usize, boot: u64, writable: bool) -> Self {
        Self { disk, inode, boot, writable }
    }

    fn with<T>(
        &self,
        kind: OpKind,
        f: impl FnOnce(&mut State, Option<Hit>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut s = self.disk.state.lock();
        if s.boot != self.boot {
            return Err(io::Error::other("the file was opened before the crash"));
        }
        if !self.writable && kind != OpKind::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let hit = SimDisk::hit(&mut s, kind)?;
        f(&mut s, hit)
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(OpKind::Read, |s, hit| {
            if let Some(hit) = hit {
                return Err(hit.error());
            }
            let n = s.inodes.get(&self.inode).map_or(0, |i| i.current.read(buf, offset));
            s.bytes_read += n as u64;
            Ok(n)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(OpKind::Write, |s, hit| {
            let grows = s
                .inodes
                .get(&self.inode)
                .map_or(0, |i| (offset + bytes.len() as u64).saturating_sub(i.current.len));
            if grows > 0 {
                s.room_for(grows)?;
            }
            let part = if hit.is_some() {
                usize::try_from(s.random() % (bytes.len() as u64 + 1)).unwrap_or(0)
            } else {
                bytes.len()
            };
            s.bytes_written += part as u64;
            if let Some(i) = s.inodes.get_mut(&self.inode) {
                i.write(&bytes[..part], offset);
            }
            hit.map_or(Ok(()), |h| Err(h.error()))
        })
    }

    fn will_need(&self, _offset: u64, len: u64) {
        self.disk.state.lock().bytes_advised += len;
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(OpKind::Sync, |s, hit| {
            let Some(i) = s.inodes.get_mut(&self.inode) else { return Ok(()) };
            if let Some(hit) = hit {
                i.dirty.clear();
                return Err(hit.error());
            }
            i.sync();
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.with(OpKind::Read, |s, _| Ok(s.inodes.get(&self.inode).map_or(0, |i| i.current.len)))
    }

    fn next_data(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        self.with(OpKind::Read, |s, hit| {
            if let Some(hit) = hit {
                return Err(hit.error());
            }
            Ok(s.inodes.get(&self.inode).and_then(|i| i.current.next_data(from)))
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(OpKind::SetLen, |s, hit| {
            if let Some(hit) = hit {
                return Err(hit.error());
            }
            if let Some(i) = s.inodes.get_mut(&self.inode) {
                i.set_len(len);
            }
            Ok(())
        })
    }
}

#[derive(Debug)]
pub(super) struct SimLock {
    disk: SimDisk,
    path: PathBuf,
    boot: u64,
}

impl SimLock {
    pub(super) fn new(disk: SimDisk, path: PathBuf, boot: u64) -> Self {
        Self { disk, path, boot }
    }
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut s = self.disk.state.lock();
        if s.boot == self.boot {
            s.locks.remove(&self.path);
        }
    }
}
