//! Writes of whole blocks past the page cache.
//!
//! A log that is synced after each write gains nothing from the page cache: every byte is copied into it, to be written out at once, and on a
//! virtual machine each fresh page of it may cost a fault of the host. `open(2)`, `O_DIRECT`: the file's offset, the length and the address
//! in memory are multiples of the block. Reads stay ordinary; the kernel drops what the cache has of a range that is written directly.

use std::{
    cell::RefCell,
    fs, io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::BLOCK;

/// Bytes that are gathered into one write.
const GATHER: usize = 1 << 20;

/// A second descriptor of a file, for writes of blocks. Made at the first of them.
#[derive(Debug, Default)]
pub(super) struct Direct {
    file: OnceLock<Option<fs::File>>,
    /// Its file system takes the flag but not the writes.
    refused: AtomicBool,
}

thread_local! {
    /// With room to find an aligned start in: at most `GATHER` bytes and one block.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Direct {
    /// For a file that is only read: its descriptor refuses writes, a second one would not.
    pub(super) fn never() -> Self {
        let direct = Self::default();
        direct.refused.store(true, Ordering::Relaxed);
        direct
    }

    /// Writes all of `parts` from `offset` on, both in whole blocks. `false`: the file system cannot do it, nothing is lost by writing the
    /// same in the ordinary way.
    ///
    /// # Errors
    /// Any I/O error; then any part may have been written.
    pub(super) fn write(&self, file: &fs::File, parts: &[&[u8]], offset: u64) -> io::Result<bool> {
        if self.refused.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let Some(direct) = self.file.get_or_init(|| reopen(file)) else { return Ok(false) };
        match BUFFER.with_borrow_mut(|buffer| gather(direct, buffer, parts, offset)) {
            Ok(()) => Ok(true),
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                tracing::info!("the file system refuses direct writes: the page cache is used");
                self.refused.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
}

/// The file behind a descriptor, wherever its name is by now.
fn reopen(file: &fs::File) -> Option<fs::File> {
    let flag = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    match fs::OpenOptions::new().write(true).custom_flags(flag).open(path) {
        Ok(direct) => Some(direct),
        Err(error) => {
            tracing::debug!(%error, "no direct writes: the page cache is used");
            None
        }
    }
}

fn gather(direct: &fs::File, buffer: &mut Vec<u8>, parts: &[&[u8]], mut offset: u64) -> io::Result<()> {
    let block = usize::try_from(BLOCK).map_err(io::Error::other)?;
    let len: usize = parts.iter().map(|p| p.len()).sum();
    let room = len.min(GATHER);
    if buffer.len() < room + block {
        // Only as large as what was written so far: an idle lane holds no memory.
        buffer.resize(room + block, 0);
    }
    let start = buffer.as_ptr().align_offset(block);
    let Some(aligned) = buffer.get_mut(start..start + room) else {
        return Err(io::ErrorKind::OutOfMemory.into());
    };
    let mut filled = 0;
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let n = rest.len().min(room - filled);
            aligned[filled..filled + n].copy_from_slice(&rest[..n]);
            (filled, rest) = (filled + n, &rest[n..]);
            if filled == room {
                direct.write_all_at(aligned, offset)?;
                (offset, filled) = (offset + room as u64, 0);
            }
        }
    }
    direct.write_all_at(&aligned[..filled], offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_whatever_the_parts() {
        // A folder beside the build's output: a real file system, where the one for temporary files may live in memory.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("f");
        let file = fs::OpenOptions::new().create_new(true).read(true).write(true).open(&path).unwrap();
        let direct = Direct::default();
        let bytes: Vec<u8> =
            (0..3 * GATHER + 2 * 4_096).map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1]).collect();
        for cuts in [vec![], vec![1, 4_095, 4_096, 5_000, GATHER + 7, 3 * GATHER]] {
            let mut parts: Vec<&[u8]> = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                parts.push(&bytes[from..cut]);
                from = cut;
            }
            // Also where the cache holds something.
            file.write_all_at(&vec![7; bytes.len()], 8_192).unwrap();
            let mut cached = vec![0; 4_096];
            file.read_exact_at(&mut cached, 8_192).unwrap();
            if !direct.write(&file, &parts, 8_192).unwrap() {
                file.write_all_at(&parts.concat(), 8_192).unwrap();
            }
            let mut back = vec![0; bytes.len()];
            file.read_exact_at(&mut back, 8_192).unwrap();
            assert!(back == bytes);
        }
    }

    #[test]
    fn a_file_that_was_renamed_is_written_where_it_is() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = fs::File::create_new(dir.path().join("a")).unwrap();
        fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
        if Direct::default().write(&file, &[&[9; 4_096]], 0).unwrap() {
            assert_eq!(fs::read(dir.path().join("b")).unwrap(), [9; 4_096]);
        }
        assert!(!dir.path().join("a").exists());
    }
}
