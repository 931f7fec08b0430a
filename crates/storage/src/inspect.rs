//! Looking into the folders of a stopped bookie. Reads only.

use std::path::{Path, PathBuf};

use tidemill_runtime::io::{Disk, read_all};
use tidemill_types::{BookieId, ClusterId, Incarnation, MemberId};

use crate::format::{
    control::{self, Control, Listed},
    cookie::{self, Cookie},
};

mod segments;

pub use segments::{SegmentKind, SegmentReport};

/// What a lane's cookie says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieReport {
    /// The cluster.
    pub cluster: ClusterId,
    /// The bookie.
    pub bookie: BookieId,
    /// This lane.
    pub lane: MemberId,
    /// All lanes.
    pub lanes: Vec<MemberId>,
    /// Last confirmed boot.
    pub incarnation: Option<Incarnation>,
    /// A boot that was announced and not confirmed.
    pub pending: Option<Incarnation>,
    /// The limbo flag.
    pub limbo: bool,
}

/// One lane folder.
#[derive(Clone, Debug)]
pub struct Report {
    /// The folder.
    pub path: PathBuf,
    /// The cookie, or why it cannot be read.
    pub cookie: Result<CookieReport, String>,
    /// Why the control file cannot be read, if so.
    pub control_error: Option<String>,
    /// Segments listed or found, by number.
    pub segments: Vec<SegmentReport>,
    /// Other files.
    pub other: Vec<String>,
}

impl Report {
    /// Findings that a boot would call damage, in words.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        out.extend(self.cookie.as_ref().err().map(|e| format!("cookie: {e}")));
        out.extend(self.control_error.as_ref().map(|e| format!("control: {e}")));
        for s in &self.segments {
            out.extend(s.problems.iter().map(|p| format!("{}: {p}", s.name)));
        }
        out
    }
}

fn read_cookie(disk: &dyn Disk, dir: &Path) -> Result<CookieReport, String> {
    let bytes = read_all(disk, &dir.join(cookie::NAME), cookie::MAX_LEN).map_err(|e| e.to_string())?;
    let bytes = bytes.ok_or("there is none")?;
    let c = Cookie::decode(&bytes).map_err(|e| e.to_string())?;
    Ok(CookieReport {
        cluster: c.cluster,
        bookie: c.bookie,
        lane: c.lane,
        lanes: c.lanes,
        incarnation: c.incarnation,
        pending: c.pending,
        limbo: c.limbo,
    })
}

fn read_control(disk: &dyn Disk, dir: &Path) -> Result<Control, String> {
    let bytes = read_all(disk, &dir.join(control::NAME), control::MAX_LEN).map_err(|e| e.to_string())?;
    Control::decode(&bytes.ok_or("there is none")?).map_err(|e| e.to_string())
}

/// Reads one lane folder. With `verify` every group and every entry is read and checked.
///
/// # Errors
/// The folder cannot be listed, or a segment cannot be read.
pub fn inspect(disk: &dyn Disk, dir: &Path, verify: bool) -> std::io::Result<Report> {
    let (control, control_error) = match read_control(disk, dir) {
        Ok(c) => (Some(c), None),
        Err(e) => (None, Some(e)),
    };
    let items = disk.list(dir)?;
    let mut other = Vec::new();
    let mut segments: Vec<SegmentReport> = Vec::new();
    let listed = |n: u32| -> Option<Listed> { control.as_ref()?.segments.get(&n).copied() };
    for item in items {
        match control::segment_number(&item.name) {
            Some(n) => segments.push(segments::report(disk, dir, n, listed(n), control.is_some(), verify)?),
            None => other.push(item.name),
        }
    }
    let missing = control.iter().flat_map(|c| c.segments.keys());
    for &n in missing {
        if !segments.iter().any(|s| s.number == n) {
            segments.push(segments::missing(n));
        }
    }
    segments.sort_by_key(|s| s.number);
    Ok(Report { path: dir.to_path_buf(), cookie: read_cookie(disk, dir), control_error, segments, other })
}
