//! Faults that hit the n-th operation of a kind.

use std::io;

/// Kind of an operation that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Any of the others.
    Any,
    /// A file is created.
    Create,
    /// Bytes are written.
    Write,
    /// A file's length is changed.
    SetLen,
    /// A file is synced.
    Sync,
    /// A folder is synced.
    SyncDir,
    /// A file is renamed.
    Rename,
    /// A file is removed.
    Remove,
    /// Bytes are read.
    Read,
}

/// One fault. It hits once.
///
/// A write that is hit may have written any part of its bytes. A sync that is hit drops the dirty bytes: they stay readable until the crash, a
/// later sync of the file answers `Ok`, and they are not on the disk. That is what Linux does (R17).
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Which operations count.
    pub kind: OpKind,
    /// How many of them go well before.
    pub after: u64,
    /// What the hit one answers.
    pub error: io::ErrorKind,
}

#[derive(Debug)]
pub(super) struct Hit(io::ErrorKind);

impl Hit {
    pub(super) fn error(&self) -> io::Error {
        io::Error::new(self.0, "injected by the simulated disk")
    }
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) count: u64,
    pub(super) power_until: Option<u64>,
    pub(super) list: Vec<Fault>,
}

impl Faults {
    pub(super) fn powered(&self) -> io::Result<()> {
        if self.power_until.is_some_and(|n| self.count >= n) {
            return Err(io::Error::other("the simulated disk has no power"));
        }
        Ok(())
    }

    pub(super) fn hit(&mut self, kind: OpKind) -> io::Result<Option<Hit>> {
        self.powered()?;
        if kind != OpKind::Read {
            self.count += 1;
        }
        let mut hit = None;
        self.list.retain_mut(|f| {
            let counts = f.kind == kind || (f.kind == OpKind::Any && kind != OpKind::Read);
            if !counts || hit.is_some() {
                return true;
            }
            if f.after == 0 {
                hit = Some(Hit(f.error));
                return false;
            }
            f.after -= 1;
            true
        });
        Ok(hit)
    }
}
