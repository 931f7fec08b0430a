//! The control file of a lane and its replacement on disk.

use std::path::PathBuf;

use tidemill_runtime::io::{Disk, DurableError, replace_durably};

use crate::format::control::{Control, NAME};

#[derive(Debug)]
pub(crate) struct ControlFile {
    path: PathBuf,
    /// As it is on disk, but for `next_number`, which may be ahead.
    pub(crate) now: Control,
}

impl ControlFile {
    pub(crate) fn new(dir: &std::path::Path, now: Control) -> Self {
        Self { path: dir.join(NAME), now }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Gives a number away. It needs no write: a number that was used is in a file name, in the list or in a deletion.
    pub(crate) fn allocate(&mut self) -> u32 {
        let n = self.now.next_number;
        self.now.next_number += 1;
        n
    }

    /// Makes a change durable.
    ///
    /// # Errors
    /// `Untouched`: nothing changed. `Unknown`: the engine must stop (R17).
    pub(crate) fn change(
        &mut self,
        disk: &dyn Disk,
        change: impl FnOnce(&mut Control),
    ) -> Result<(), DurableError> {
        let mut new = self.now.clone();
        change(&mut new);
        replace_durably(disk, &self.path, &new.encode())?;
        self.now = new;
        Ok(())
    }
}
