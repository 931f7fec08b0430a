//! A simulated disk that keeps unsynced bytes apart and loses any subset of them in a crash.
//!
//! Clones share one disk: keep one outside the process that is simulated, it survives the crash. Everything is decided by the seed and by
//! the order of the calls.

mod crash;
mod fault;
mod file;
mod image;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

pub use self::{
    crash::CrashPlan,
    fault::{Fault, OpKind},
};
use self::{
    fault::{Faults, Hit},
    file::{SimFile, SimLock},
    image::Inode,
};
use super::{DirItem, Disk, File, Lock, OpenMode, Space, parent};

/// The simulated disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// A change of one folder that is not durable yet; all parts of it happen together or not at all.
#[derive(Clone, Debug)]
struct DirChange {
    dir: PathBuf,
    unset: Option<PathBuf>,
    set: Option<(PathBuf, usize)>,
}

#[derive(Debug)]
struct State {
    rng: u64,
    /// Counts crashes: handles of an earlier boot answer errors.
    boot: u64,
    inodes: BTreeMap<usize, Inode>,
    next_inode: usize,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    changes: Vec<DirChange>,
    dirs: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    total: u64,
    faults: Faults,
    bytes_written: u64,
    bytes_read: u64,
    bytes_advised: u64,
}

impl State {
    /// splitmix64.
    fn random(&mut self) -> u64 {
        self.rng = self.rng.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.rng;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn used(&self) -> u64 {
        let linked: BTreeSet<usize> = self.names.values().copied().collect();
        linked.iter().filter_map(|i| self.inodes.get(i)).map(|i| i.current.len).sum()
    }

    fn room_for(&self, more: u64) -> io::Result<()> {
        if self.used() + more > self.total {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full"));
        }
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("{} does not exist", path.display()))
        })
    }

    fn change(&mut self, dir: &Path, unset: Option<PathBuf>, set: Option<(PathBuf, usize)>) {
        if let Some(path) = &unset {
            self.names.remove(path);
        }
        if let Some((path, inode)) = &set {
            self.names.insert(path.clone(), *inode);
        }
        self.changes.push(DirChange { dir: dir.to_path_buf(), unset, set });
    }

    fn make_durable(&mut self, change: DirChange) {
        if let Some(path) = change.unset {
            self.durable_names.remove(&path);
        }
        if let Some((path, inode)) = change.set {
            self.durable_names.insert(path, inode);
        }
    }
}

impl SimDisk {
    /// An empty disk of `total` bytes whose choices follow `seed`.
    #[must_use]
    pub fn new(seed: u64, total: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                rng: seed,
                boot: 0,
                inodes: BTreeMap::new(),
                next_inode: 0,
                names: BTreeMap::new(),
                durable_names: BTreeMap::new(),
                changes: Vec::new(),
                dirs: BTreeSet::from([PathBuf::from("/")]),
                locks: BTreeSet::new(),
                total,
                faults: Faults::default(),
                bytes_written: 0,
                bytes_read: 0,
                bytes_advised: 0,
            })),
        }
    }

    /// Changes the size of the disk, bytes; files that are there stay.
    pub fn set_total(&self, total: u64) {
        self.state.lock().total = total;
    }

    /// Operations so far (all kinds that can fail, reads and listings apart).
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state.lock().faults.count
    }

    /// Bytes handed to writes so far.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.state.lock().bytes_written
    }

    /// Bytes that reads asked for so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.state.lock().bytes_read
    }

    /// Bytes that [`File::will_need`](super::File::will_need) named.
    #[must_use]
    pub fn bytes_advised(&self) -> u64 {
        self.state.lock().bytes_advised
    }

    /// Every later call fails without any effect once `n` more operations were done: the power is gone until [`SimDisk::crash`].
    pub fn lose_power_after(&self, n: u64) {
        let mut s = self.state.lock();
        s.faults.power_until = Some(s.faults.count + n);
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.list.push(fault);
    }

    /// Removes all faults that were not hit.
    pub fn clear_faults(&self) {
        let mut s = self.state.lock();
        s.faults.list.clear();
        s.faults.power_until = None;
    }

    /// A copy of the disk as it is now, with an own fate: later calls on one do not change the other. Handles belong to the old one.
    #[must_use]
    pub fn fork(&self, seed: u64) -> Self {
        let s = self.state.lock();
        Self {
            state: Arc::new(Mutex::new(State {
                rng: seed,
                boot: s.boot,
                inodes: s.inodes.clone(),
                next_inode: s.next_inode,
                names: s.names.clone(),
                durable_names: s.durable_names.clone(),
                changes: s.changes.clone(),
                dirs: s.dirs.clone(),
                locks: BTreeSet::new(),
                total: s.total,
                faults: Faults::default(),
                bytes_written: 0,
                bytes_read: 0,
                bytes_advised: 0,
            })),
        }
    }

    /// Crashes: unsynced bytes and folder changes are lost as `plan` says, locks are released, open handles go dead.
    pub fn crash(&self, plan: CrashPlan) {
        crash::crash(&mut self.state.lock(), plan);
    }

    /// Flips one bit of a file, at rest.
    ///
    /// # Errors
    /// `NotFound`, or `InvalidInput` behind the end of the file.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut s = self.state.lock();
        let inode = s.find(path)?;
        let Some(inode) = s.inodes.get_mut(&inode) else { return Err(io::ErrorKind::NotFound.into()) };
        inode.flip_bit(bit)
    }

    /// Makes a hole of whole sectors of a file, at rest: the stretch reads as zeros and is told as never written.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn punch(&self, path: &Path, stretch: Range<u64>) -> io::Result<()> {
        let mut s = self.state.lock();
        let inode = s.find(path)?;
        if let Some(inode) = s.inodes.get_mut(&inode) {
            inode.punch(stretch);
        }
        Ok(())
    }

    /// Cuts a file off at `len`, at rest.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let mut s = self.state.lock();
        let inode = s.find(path)?;
        if let Some(inode) = s.inodes.get_mut(&inode) {
            inode.current.set_len(len);
            inode.durable.set_len(len);
        }
        Ok(())
    }

    /// Counts an operation and answers the fault that hits it.
    fn hit(s: &mut State, kind: OpKind) -> io::Result<Option<Hit>> {
        s.faults.hit(kind)
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut s = self.state.lock();
        s.faults.powered()?;
        for dir in path.ancestors() {
            s.dirs.insert(dir.to_path_buf());
        }
        Ok(())
    }

    fn create(&self, path: &Path, preallocate: u64) -> io::Result<Arc<dyn File>> {
        let mut s = self.state.lock();
        if let Some(hit) = Self::hit(&mut s, OpKind::Create)? {
            return Err(hit.error());
        }
        if s.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !s.dirs.contains(&parent(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        s.room_for(preallocate)?;
        let inode = s.next_inode;
        s.next_inode += 1;
        s.inodes.insert(inode, Inode::new(preallocate));
        s.change(&parent(path), None, Some((path.to_path_buf(), inode)));
        Ok(Arc::new(SimFile::new(self.clone(), inode, s.boot, true)))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let s = self.state.lock();
        s.faults.powered()?;
        let inode = s.find(path)?;
        Ok(Arc::new(SimFile::new(self.clone(), inode, s.boot, mode == OpenMode::ReadWrite)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirItem>> {
        let s = self.state.lock();
        s.faults.powered()?;
        if !s.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let name = |p: &Path| p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let inside = |p: &Path| p.parent() == Some(dir);
        let mut items: Vec<DirItem> = s
            .names
            .iter()
            .filter(|(p, _)| inside(p))
            .map(|(p, i)| DirItem {
                name: name(p),
                len: s.inodes.get(i).map_or(0, |i| i.current.len),
                is_dir: false,
            })
            .collect();
        items.extend(s.dirs.iter().filter(|p| inside(p)).map(|p| DirItem {
            name: name(p),
            len: 0,
            is_dir: true,
        }));
        items.sort();
        Ok(items)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut s = self.state.lock();
        if let Some(hit) = Self::hit(&mut s, OpKind::Rename)? {
            return Err(hit.error());
        }
        let inode = s.find(from)?;
        s.change(&parent(to), Some(from.to_path_buf()), Some((to.to_path_buf(), inode)));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut s = self.state.lock();
        if let Some(hit) = Self::hit(&mut s, OpKind::SyncDir)? {
            return Err(hit.error());
        }
        let (now, later) = std::mem::take(&mut s.changes).into_iter().partition(|c| c.dir == dir);
        s.changes = later;
        let now: Vec<DirChange> = now;
        for change in now {
            s.make_durable(change);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut s = self.state.lock();
        if let Some(hit) = Self::hit(&mut s, OpKind::Remove)? {
            return Err(hit.error());
        }
        s.find(path)?;
        s.change(&parent(path), Some(path.to_path_buf()), None);
        Ok(())
    }

    fn space(&self, _dir: &Path) -> io::Result<Space> {
        let s = self.state.lock();
        s.faults.powered()?;
        Ok(Space { total: s.total, free: s.total.saturating_sub(s.used()) })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut s = self.state.lock();
        s.faults.powered()?;
        if !s.dirs.contains(&parent(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if !s.locks.insert(path.to_path_buf()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock::new(self.clone(), path.to_path_buf(), s.boot)))
    }
}
