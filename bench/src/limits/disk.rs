//! Writing behind a sync.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
    time::{Duration, Instant},
};

use rustix::fs::{FallocateFlags, fallocate, fdatasync};

use super::Limit;
use crate::outcome::as_f64;

/// Space that is reserved beforehand and written from the start again when it is used up, bytes.
const FILE: u64 = 256 << 20;

pub(super) fn measure(dir: &Path, seconds: u64) -> anyhow::Result<Vec<Limit>> {
    let mut all = Vec::new();
    for size in [4_u64 << 10, 64 << 10, 256 << 10, 1 << 20] {
        for writers in [1, 3] {
            all.push(writes(dir, size, writers, Duration::from_secs(seconds))?);
        }
    }
    Ok(all)
}

fn writes(dir: &Path, size: u64, writers: usize, time: Duration) -> anyhow::Result<Limit> {
    let runs: Vec<_> = (0..writers)
        .map(|n| {
            let path = dir.join(format!("limit-{n}"));
            std::thread::spawn(move || one(&path, size, time))
        })
        .collect();
    let mut calls = Vec::new();
    for r in runs {
        calls.extend(r.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??);
    }
    calls.sort_unstable();
    let at = |q: usize| calls.get(calls.len() * q / 100).map(|us| as_f64(*us));
    let by = if writers == 1 { "one writer".to_owned() } else { format!("{writers} writers") };
    Ok(Limit {
        name: format!("write and fdatasync, {} KiB, {by}", size >> 10),
        bytes_per_second: as_f64(size) * as_f64(calls.len() as u64) / time.as_secs_f64(),
        p50_us: at(50),
        p99_us: at(99),
    })
}

/// Microseconds of each write with its sync.
fn one(path: &Path, size: u64, time: Duration) -> anyhow::Result<Vec<u64>> {
    let file = File::create(path)?;
    fallocate(&file, FallocateFlags::empty(), 0, FILE)?;
    file.sync_all()?;
    let bytes = vec![0x5a; usize::try_from(size)?];
    let (begin, mut calls, mut at) = (Instant::now(), Vec::new(), 0);
    while begin.elapsed() < time {
        let call = Instant::now();
        file.write_all_at(&bytes, at)?;
        fdatasync(&file)?;
        calls.push(u64::try_from(call.elapsed().as_micros())?);
        at = (at + size) % FILE;
    }
    fs::remove_file(path)?;
    Ok(calls)
}
