//! Folders that are emptied and measured.

use std::{fs, io, path::Path};

use anyhow::Context;

/// An empty folder.
pub(crate) fn emptied(dir: &Path) -> anyhow::Result<()> {
    removed(dir)?;
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))
}

/// No folder.
pub(crate) fn removed(dir: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Blocks in use below a folder, bytes. What vanishes meanwhile counts as nothing.
pub(crate) fn used(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .filter_map(|e| {
            let meta = e.metadata().ok()?;
            Some(if meta.is_dir() { used(&e.path()) } else { meta.blocks() * 512 })
        })
        .sum()
}
