//! The bytes of a simulated file: what a reader sees and what the platter holds, sector by sector.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    ops::Range,
    sync::Arc,
};

/// Bytes that the disk writes as one.
pub(super) const SECTOR: usize = 512;

type Sector = Arc<[u8; SECTOR]>;

/// Sparse bytes; a sector that is missing reads as zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    pub(super) len: u64,
    pub(super) sectors: BTreeMap<u64, Sector>,
}

/// A file: its two images and the sectors in which they may differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) current: Image,
    pub(super) durable: Image,
    pub(super) dirty: BTreeSet<u64>,
}

fn split(offset: u64) -> (u64, usize) {
    let at = usize::try_from(offset % SECTOR as u64).unwrap_or(0);
    (offset / SECTOR as u64, at)
}

impl Image {
    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let (last, at) = split(len);
            let _cut = self.sectors.split_off(&(last + u64::from(at > 0)));
            if at > 0
                && let Some(s) = self.sectors.get_mut(&last)
            {
                Arc::make_mut(s)[at..].fill(0);
            }
        }
        self.len = len;
    }

    /// The sectors that were written, as a file system tells them; what a crash or a cut took away is a hole again.
    pub(super) fn next_data(&self, from: u64) -> Option<Range<u64>> {
        let size = SECTOR as u64;
        if from >= self.len {
            return None;
        }
        let mut there =
            self.sectors.range(split(from).0..).map(|(n, _)| *n).take_while(|n| n * size < self.len);
        let first = there.next()?;
        let mut last = first;
        for n in there {
            if n != last + 1 {
                break;
            }
            last = n;
        }
        let end = ((last + 1) * size).min(self.len);
        let start = (first * size).max(from);
        Some(start..end)
    }

    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let there = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let n = buf.len().min(there);
        let mut done = 0;
        while done < n {
            let (sector, at) = split(offset + done as u64);
            let part = (SECTOR - at).min(n - done);
            match self.sectors.get(&sector) {
                Some(s) => buf[done..done + part].copy_from_slice(&s[at..at + part]),
                None => buf[done..done + part].fill(0),
            }
            done += part;
        }
        n
    }
}

impl Inode {
    /// A new file; its preallocated length is as durable as its bytes, that is, not yet.
    pub(super) fn new(preallocated: u64) -> Self {
        Self { current: Image { len: preallocated, ..Image::default() }, ..Self::default() }
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        self.current.len = self.current.len.max(offset + bytes.len() as u64);
        let mut done = 0;
        while done < bytes.len() {
            let (sector, at) = split(offset + done as u64);
            let part = (SECTOR - at).min(bytes.len() - done);
            let s = self.current.sectors.entry(sector).or_insert_with(|| Arc::new([0; SECTOR]));
            Arc::make_mut(s)[at..at + part].copy_from_slice(&bytes[done..done + part]);
            self.dirty.insert(sector);
            done += part;
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        self.current.set_len(len);
        let (last, _) = split(len);
        self.dirty.insert(last);
    }

    pub(super) fn sync(&mut self) {
        self.durable.set_len(self.current.len);
        for sector in std::mem::take(&mut self.dirty) {
            match self.current.sectors.get(&sector) {
                Some(s) => drop(self.durable.sectors.insert(sector, Arc::clone(s))),
                None => drop(self.durable.sectors.remove(&sector)),
            }
        }
    }

    pub(super) fn punch(&mut self, stretch: Range<u64>) {
        let sectors = stretch.start.div_ceil(SECTOR as u64)..stretch.end / SECTOR as u64;
        for image in [&mut self.current, &mut self.durable] {
            image.sectors.retain(|n, _| !sectors.contains(n));
        }
    }

    pub(super) fn flip_bit(&mut self, bit: u64) -> io::Result<()> {
        if bit / 8 >= self.current.len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (sector, at) = split(bit / 8);
        for image in [&mut self.current, &mut self.durable] {
            let s = image.sectors.entry(sector).or_insert_with(|| Arc::new([0; SECTOR]));
            Arc::make_mut(s)[at] ^= 1 << (bit % 8);
        }
        Ok(())
    }
}
