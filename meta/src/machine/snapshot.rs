//! Snapshot files: written to a temporary name, synced, renamed, folder synced.
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | magic `TMMDRSNP` |
//! | 8 | 2 | version, 1 |
//! | 10 | 1 | bit 0: the membership has a log id, bit 1: something was applied |
//! | 11 | 5 | zero |
//! | 16 | 8, 8 | last applied entry: term, index |
//! | 32 | 8, 8 | entry of the membership: term, index |
//! | 48 | 4 | length m of the membership, at most 1 MiB |
//! | 52 | 4 | CRC-32C of bytes 0..52 and the membership |
//! | 56 | m | membership (postcard: voters, nodes) |
//! | 56 + m | rest | state, as `docs/formats/metadata.md` says |

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tidemill_metadata::{Snapshot, State};
use tidemill_runtime::io::{Disk, File, OpenMode, TEMP_SUFFIX};
use tidemill_types::entry::crc32c;

use crate::{
    MetaStartError,
    log::{decode_membership, encode_membership},
    types::{LogId, SnapshotMeta, StoredMembership, log_id, term_of},
};

const MAGIC: &[u8; 8] = b"TMMDRSNP";
const VERSION: u16 = 1;
const HEAD: usize = 56;
const MAX_MEMBERSHIP: usize = 1 << 20;
/// Ceiling of a snapshot file.
pub(crate) const MAX_SNAPSHOT: u64 = 16 << 30;
/// Bytes of one read.
const BUFFER: usize = 1 << 20;

/// A snapshot on disk.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) len: u64,
}

/// The folder of snapshots; one is current.
#[derive(Debug)]
pub(crate) struct SnapshotFolder {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    temp: AtomicU64,
}

impl SnapshotFolder {
    /// Opens the folder and removes what a crash left over; returns the current snapshot.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
    ) -> Result<(Self, Option<(SnapshotMeta, SnapshotFile)>), MetaStartError> {
        let folder = dir.join("snapshot");
        disk.create_dir(&folder).map_err(|e| MetaStartError::io("creating", &folder, e))?;
        let this = Self { disk, folder, temp: AtomicU64::new(0) };
        let mut names = Vec::new();
        let items =
            this.disk.list(&this.folder).map_err(|e| MetaStartError::io("listing", &this.folder, e))?;
        for item in items {
            let path = this.folder.join(&item.name);
            if item.name.ends_with(TEMP_SUFFIX) {
                this.disk.remove(&path).map_err(|e| MetaStartError::io("removing", path, e))?;
            } else if item.name.ends_with(".snap") {
                names.push(path);
            }
        }
        names.sort();
        let Some(path) = names.pop() else { return Ok((this, None)) };
        let corrupt = |why: String| MetaStartError::Corrupt {
            path: path.clone(),
            offset: 0,
            why,
            dir: dir.to_path_buf(),
        };
        let snapshot = this.file(&path).map_err(|e| MetaStartError::io("opening", &path, e))?;
        let (meta, _) = read_head(&snapshot).map_err(|e| corrupt(e.to_string()))?;
        for old in names {
            this.disk.remove(&old).map_err(|e| MetaStartError::io("removing", old, e))?;
        }
        Ok((this, Some((meta, snapshot))))
    }

    fn file(&self, path: &Path) -> io::Result<SnapshotFile> {
        let file = self.disk.open(path, OpenMode::Read)?;
        let len = file.len()?;
        Ok(SnapshotFile { path: path.to_path_buf(), file, len })
    }

    /// A new empty temporary file.
    pub(crate) fn temp(&self) -> io::Result<(PathBuf, Arc<dyn File>)> {
        let n = self.temp.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{n}{TEMP_SUFFIX}"));
        let file = self.disk.create(&path, 0)?;
        Ok((path, file))
    }

    /// Removes a temporary file that is not needed.
    pub(crate) fn discard(&self, path: &Path) {
        if let Err(e) = self.disk.remove(path) {
            tracing::debug!(path = %path.display(), error = %e, "a temporary snapshot was not removed");
        }
    }

    /// Writes a snapshot and makes it the current one.
    pub(super) fn write(
        &self,
        snapshot: &Snapshot,
        applied: Option<LogId>,
        membership: &StoredMembership,
    ) -> io::Result<SnapshotFile> {
        let (path, file) = self.temp()?;
        let mut at = write_head(&*file, applied, membership)?;
        for piece in snapshot.pieces() {
            let piece = piece.map_err(io::Error::other)?;
            file.write_at(&piece, at)?;
            at += piece.len() as u64;
        }
        self.adopt(&path, &*file, applied)
    }

    /// Makes a received snapshot the current one: its state, and its file under the final name.
    pub(super) fn install(
        &self,
        meta: &SnapshotMeta,
        from: &SnapshotFile,
    ) -> io::Result<(State, SnapshotFile)> {
        let applied = meta.last_log_id;
        let (found, head) = read_head(from)?;
        if found != *meta {
            return Err(io::Error::other("the snapshot's file is another one than its metadata says"));
        }
        let body = FileReader { file: from.file.clone(), at: head, end: from.len };
        let state = State::read_from(io::BufReader::with_capacity(BUFFER, body)).map_err(io::Error::other)?;
        if from.path == self.path_of(applied) {
            return Ok((state, from.clone()));
        }
        let own_temp = from.path.parent() == Some(self.folder.as_path());
        let (path, file) = if own_temp { (from.path.clone(), from.file.clone()) } else { self.copy(from)? };
        let installed = self.adopt(&path, &*file, applied)?;
        Ok((state, installed))
    }

    fn copy(&self, from: &SnapshotFile) -> io::Result<(PathBuf, Arc<dyn File>)> {
        let (path, file) = self.temp()?;
        let mut buffer = vec![0; BUFFER];
        let mut at = 0;
        while at < from.len {
            let n = from.file.read_at(&mut buffer, at)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            file.write_at(&buffer[..n], at)?;
            at += n as u64;
        }
        Ok((path, file))
    }

    fn path_of(&self, applied: Option<LogId>) -> PathBuf {
        let (index, term) = applied.map_or((0, 0), |a| (a.index, term_of(&a)));
        self.folder.join(format!("{index:020}-{term:020}.snap"))
    }

    /// Sync, rename, sync the folder; then older snapshots go.
    fn adopt(&self, temp: &Path, file: &dyn File, applied: Option<LogId>) -> io::Result<SnapshotFile> {
        file.sync_data()?;
        let path = self.path_of(applied);
        self.disk.rename(temp, &path)?;
        self.disk.sync_dir(&self.folder)?;
        for item in self.disk.list(&self.folder)? {
            let other = self.folder.join(&item.name);
            if item.name.ends_with(".snap") && other < path {
                self.disk.remove(&other)?;
            }
        }
        self.file(&path)
    }
}

fn write_head(file: &dyn File, applied: Option<LogId>, membership: &StoredMembership) -> io::Result<u64> {
    let nodes = encode_membership(membership.membership()).map_err(io::Error::other)?;
    let len = u32::try_from(nodes.len()).ok().filter(|_| nodes.len() <= MAX_MEMBERSHIP);
    let len = len.ok_or_else(|| io::Error::other("a membership above 1 MiB"))?;
    let mut h = Vec::with_capacity(HEAD + nodes.len());
    h.extend_from_slice(MAGIC);
    h.extend_from_slice(&VERSION.to_le_bytes());
    h.push(u8::from(membership.log_id().is_some()) | u8::from(applied.is_some()) << 1);
    h.extend_from_slice(&[0; 5]);
    for id in [applied, *membership.log_id()] {
        h.extend_from_slice(&id.map_or(0, |i| term_of(&i)).to_le_bytes());
        h.extend_from_slice(&id.map_or(0, |i| i.index).to_le_bytes());
    }
    h.extend_from_slice(&len.to_le_bytes());
    let crc = crc32c(&[&h, &nodes]);
    h.extend_from_slice(&crc.to_le_bytes());
    h.extend_from_slice(&nodes);
    file.write_at(&h, 0)?;
    Ok(h.len() as u64)
}

/// Metadata of a snapshot's file and where the state begins.
pub(crate) fn read_head(s: &SnapshotFile) -> io::Result<(SnapshotMeta, u64)> {
    let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    if s.len > MAX_SNAPSHOT {
        return Err(bad("a snapshot above 16 GiB"));
    }
    let mut h = [0; HEAD];
    s.file.read_exact_at(&mut h, 0)?;
    if &h[..8] != MAGIC {
        return Err(bad("this is no snapshot of a raft group"));
    }
    if h[8..10] != VERSION.to_le_bytes() {
        return Err(bad("a version of the snapshot that is not known"));
    }
    let word = |at: usize| {
        let mut x = [0; 8];
        x.copy_from_slice(&h[at..at + 8]);
        u64::from_le_bytes(x)
    };
    let len = u32::from_le_bytes([h[48], h[49], h[50], h[51]]) as usize;
    if len > MAX_MEMBERSHIP {
        return Err(bad("a membership above 1 MiB"));
    }
    let mut nodes = vec![0; len];
    s.file.read_exact_at(&mut nodes, HEAD as u64)?;
    if crc32c(&[&h[..52], &nodes]).to_le_bytes() != h[52..] {
        return Err(bad("the checksum of the snapshot's head does not match"));
    }
    let membership = decode_membership(&nodes).map_err(|e| bad(&e))?;
    let at = (h[10] & 1 != 0).then(|| log_id(word(32), word(40)));
    let meta = SnapshotMeta {
        last_log_id: (h[10] & 2 != 0).then(|| log_id(word(16), word(24))),
        last_membership: StoredMembership::new(at, membership),
    };
    Ok((meta, (HEAD + len) as u64))
}

struct FileReader {
    file: Arc<dyn File>,
    at: u64,
    end: u64,
}

impl Read for FileReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buf.len());
        let n = self.file.read_at(&mut buf[..left], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
