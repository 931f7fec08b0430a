//! The operating system's file system: pwrite, fdatasync, fallocate, flock.

use std::{
    fs,
    io::{self, IoSlice},
    num::NonZeroU64,
    ops::Range,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

use rustix::{
    fs::{Advice, FallocateFlags, FlockOperation, SeekFrom},
    io::Errno,
};

use super::{DirItem, Disk, File, Lock, OpenMode, Space, direct::Direct, parent, whole_blocks};

/// Most parts of one write that the system takes (IOV_MAX).
const MAX_PARTS: usize = 1_024;

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile {
    file: fs::File,
    direct: Direct,
}

/// Holds the descriptor that carries the flock.
#[derive(Debug)]
struct RealLock(#[expect(dead_code, reason = "closing the descriptor releases the lock")] fs::File);

impl Lock for RealLock {}

impl RealFile {
    fn new(file: fs::File, mode: OpenMode) -> Self {
        let direct = if mode == OpenMode::ReadWrite { Direct::default() } else { Direct::never() };
        Self { file, direct }
    }
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.file.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn write_parts_at(&self, parts: &[&[u8]], mut offset: u64) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> =
            parts.iter().filter(|p| !p.is_empty()).map(|p| IoSlice::new(p)).collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            let some = rest.len().min(MAX_PARTS);
            match rustix::io::pwritev(&self.file, &rest[..some], offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    IoSlice::advance_slices(&mut rest, n);
                    offset += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn write_blocks_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        whole_blocks(parts, offset)?;
        if self.direct.write(&self.file, parts, offset)? {
            Ok(())
        } else {
            self.write_parts_at(parts, offset)
        }
    }

    fn will_need(&self, offset: u64, len: u64) {
        // What cannot be brought in now is read when it is asked for; an error shows there.
        let _ = rustix::fs::fadvise(&self.file, offset, NonZeroU64::new(len), Advice::WillNeed);
    }

    fn sync_data(&self) -> io::Result<()> {
        // EINTR is an error like any other here: a second fdatasync on the descriptor proves nothing (R17).
        Ok(rustix::fs::fdatasync(&self.file)?)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn next_data(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        let len = self.len()?;
        if from >= len {
            return Ok(None);
        }
        // Nothing here uses the descriptor's own position, which these move.
        match rustix::fs::seek(&self.file, SeekFrom::Data(from)) {
            // A file system without holes answers the end of the file.
            Ok(start) => match rustix::fs::seek(&self.file, SeekFrom::Hole(start)) {
                Ok(end) => Ok(Some(start..end)),
                Err(_) => Ok(Some(start..len)),
            },
            // Nothing but a hole up to the end.
            Err(Errno::NXIO) => Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Some(from..len)),
            Err(e) => Err(e.into()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}

impl RealDisk {
    fn reserve(file: &fs::File, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            // File systems without fallocate: the length alone; writes may then meet a full disk.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes),
            Err(e) => Err(e.into()),
        }
    }
}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        let missing: Vec<&Path> = path.ancestors().take_while(|p| !p.is_dir()).collect();
        fs::create_dir_all(path)?;
        for made in missing {
            self.sync_dir(&parent(made))?;
        }
        Ok(())
    }

    fn create(&self, path: &Path, preallocate: u64) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        if preallocate > 0
            && let Err(e) = Self::reserve(&file, preallocate)
        {
            drop(file);
            fs::remove_file(path)?;
            return Err(e);
        }
        Ok(Arc::new(RealFile::new(file, OpenMode::ReadWrite)))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(mode == OpenMode::ReadWrite).open(path)?;
        Ok(Arc::new(RealFile::new(file, mode)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirItem>> {
        let mut items = Vec::new();
        for item in fs::read_dir(dir)? {
            let item = item?;
            let meta = item.metadata()?;
            items.push(DirItem {
                name: item.file_name().to_string_lossy().into_owned(),
                len: if meta.is_dir() { 0 } else { meta.len() },
                is_dir: meta.is_dir(),
            });
        }
        items.sort();
        Ok(items)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        Ok(rustix::fs::fsync(&fs::File::open(dir)?)?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn space(&self, dir: &Path) -> io::Result<Space> {
        let s = rustix::fs::statvfs(dir)?;
        // What only root may use counts as used: this process cannot write there.
        let free = s.f_bavail * s.f_frsize;
        let reserved = s.f_bfree.saturating_sub(s.f_bavail) * s.f_frsize;
        Ok(Space { total: (s.f_blocks * s.f_frsize).saturating_sub(reserved), free })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Box::new(RealLock(file))),
            Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::WouldBlock.into()),
            Err(e) => Err(e.into()),
        }
    }
}
