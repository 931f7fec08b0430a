//! The one place where a small file is replaced durably: write a temporary file, sync it, rename it, sync the folder.
//!
//! After a crash at any step the name holds the old bytes or the new ones, never a mixture and never nothing.

use std::{io, path::Path};

use super::{Disk, OpenMode, parent};

/// Ends the names of temporary files; a file of such a name that a boot finds is left over from a crash and may be removed.
pub const TEMP_SUFFIX: &str = ".tmp";

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum DurableError {
    /// The name still holds the old bytes, durably; the call may be repeated.
    #[error("{0}")]
    Untouched(io::Error),
    /// The name may hold the old or the new bytes, and a sync may have failed: final for a process that relies on it (R17).
    #[error("{0}")]
    Unknown(io::Error),
}

impl From<DurableError> for io::Error {
    fn from(e: DurableError) -> Self {
        match e {
            DurableError::Untouched(e) | DurableError::Unknown(e) => e,
        }
    }
}

/// Replaces the file at `path` by `bytes`. When it returns `Ok` the new bytes are durable under that name.
///
/// # Errors
/// Any I/O error. The name then holds the old or the new bytes.
pub fn write_durably(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    Ok(replace_durably(disk, path, bytes)?)
}

/// As [`write_durably`], and tells the harmless failures from the others.
///
/// # Errors
/// [`DurableError`].
pub fn replace_durably(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), DurableError> {
    let mut temp = path.as_os_str().to_owned();
    temp.push(TEMP_SUFFIX);
    let temp = Path::new(&temp);
    match disk.remove(temp) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(DurableError::Untouched(e)),
        _ => {}
    }
    let file = disk.create(temp, 0).map_err(DurableError::Untouched)?;
    file.write_at(bytes, 0).map_err(DurableError::Untouched)?;
    // The bytes must be durable before the name points at them, or a crash leaves the name with an empty file.
    file.sync_data().map_err(DurableError::Unknown)?;
    disk.rename(temp, path).map_err(DurableError::Unknown)?;
    disk.sync_dir(&parent(path)).map_err(DurableError::Unknown)
}

/// Reads a whole file of at most `max` bytes; `None` when there is no such file.
///
/// # Errors
/// `InvalidData` when it is longer than `max`, or any I/O error.
pub fn read_all(disk: &dyn Disk, path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, OpenMode::Read) {
        Ok(f) => f,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let len = file.len()?;
    if len > max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is {len} bytes, at most {max} expected", path.display()),
        ));
    }
    let len = usize::try_from(len).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Some(bytes))
}
