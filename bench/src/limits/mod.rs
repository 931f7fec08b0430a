//! What the machine can do at most, measured by itself in the same run.

mod cpu;
mod disk;
mod loopback;

use std::path::Path;

use serde::{Deserialize, Serialize};

/// One figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Limit {
    pub(crate) name: String,
    /// Bytes a second.
    pub(crate) bytes_per_second: f64,
    /// One call, microseconds, where there are calls.
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
}

/// All of them; `dir` lies on the disk that the systems use.
pub(crate) fn measure(dir: &Path, quick: bool) -> anyhow::Result<Vec<Limit>> {
    let seconds = if quick { 1 } else { 4 };
    let mut all = disk::measure(dir, seconds)?;
    all.push(loopback::measure(seconds)?);
    all.extend(cpu::measure());
    for l in &all {
        let calls = l
            .p50_us
            .map_or_else(String::new, |p| format!(", p50 {p:.0} us, p99 {:.0} us", l.p99_us.unwrap_or(p)));
        println!("  {:<44} {:>8.0} MB/s{calls}", l.name, l.bytes_per_second / 1e6);
    }
    Ok(all)
}
