//! Reading the log at boot.
//!
//! A torn tail (records that were written and never synced) is dropped. Damage before it refuses the start: dropping entries
//! that this member has promised to keep could undo a commit. Which of the two it is, later records tell: each names the
//! offset up to which its file was durable when it was written.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use tidemill_runtime::io::{Disk, File, OpenMode, TEMP_SUFFIX};

use super::{
    files,
    format::{self, HEADER_LEN, Kind, MAX_FILE, Record},
    payload::Stored,
};
use crate::{
    MetaStartError,
    types::{LogId, NodeId, log_id},
};

/// A file of the log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    /// Index of its first entry.
    pub(super) first: u64,
    /// Offsets of its entries' records.
    pub(super) offsets: Vec<u64>,
    /// End of its last record.
    pub(super) end: u64,
    /// What of it is durable.
    pub(super) synced: u64,
}

impl Segment {
    /// Index after its last entry.
    pub(super) fn next(&self) -> u64 {
        self.first + self.offsets.len() as u64
    }
}

/// What a boot found.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) segments: Vec<Segment>,
    /// Entries above `purged`, in order; the first has index `first`.
    pub(super) entries: Vec<Stored>,
    pub(super) first: u64,
    pub(super) purged: Option<LogId>,
    pub(super) committed: Option<LogId>,
    /// Bytes of a torn tail that were dropped.
    pub(super) dropped: u64,
}

/// Name of the file whose first entry is `first`.
pub(super) fn file_name(first: u64) -> String {
    format!("{first:020}.log")
}

/// Reads the folder `dir/log`, drops a torn tail and files that are purged.
pub(super) fn load(disk: &dyn Disk, dir: &Path, node: NodeId) -> Result<Loaded, MetaStartError> {
    let folder = dir.join("log");
    disk.create_dir(&folder).map_err(|e| MetaStartError::io("creating", &folder, e))?;
    let purged = files::read_purged(disk, dir)?;
    let names = names(disk, &folder)?;
    let mut out = Loaded { purged, first: purged.map_or(0, |p| p.index + 1), ..Loaded::default() };
    let mut found = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let last = i + 1 == names.len();
        if let Some(s) = read_segment(disk, dir, &folder.join(name), node, last, &mut out)? {
            found.push(s);
        }
    }
    collect(disk, dir, found, &mut out)?;
    // A mark can outlive entries only by damage that was taken for a torn tail; it must not promise what is not there.
    let last = out.entries.last().map(|e| (e.term, out.first + out.entries.len() as u64 - 1));
    let last = last.map(|(term, index)| log_id(term, index)).or(out.purged);
    out.committed = out.committed.min(last);
    Ok(out)
}

/// Log files in order; leftovers of a crash are removed.
fn names(disk: &dyn Disk, folder: &Path) -> Result<Vec<String>, MetaStartError> {
    let mut names = Vec::new();
    for item in disk.list(folder).map_err(|e| MetaStartError::io("listing", folder, e))? {
        if item.name.ends_with(TEMP_SUFFIX) {
            let path = folder.join(&item.name);
            disk.remove(&path).map_err(|e| MetaStartError::io("removing", path, e))?;
        } else if item.name.ends_with(".log") {
            names.push(item.name);
        }
    }
    names.sort();
    Ok(names)
}

/// A segment with its entries' payloads.
struct Found {
    segment: Segment,
    entries: Vec<Stored>,
}

fn read_segment(
    disk: &dyn Disk,
    dir: &Path,
    path: &Path,
    node: NodeId,
    last: bool,
    out: &mut Loaded,
) -> Result<Option<Found>, MetaStartError> {
    let io = |what| move |e| MetaStartError::io(what, path, e);
    let corrupt = |offset: usize, why: String| MetaStartError::Corrupt {
        path: path.to_path_buf(),
        offset: offset as u64,
        why,
        dir: dir.to_path_buf(),
    };
    let file = disk.open(path, OpenMode::ReadWrite).map_err(io("opening"))?;
    let len = file.len().map_err(io("reading"))?;
    if len > MAX_FILE {
        return Err(corrupt(0, format!("{len} bytes, at most {MAX_FILE} expected")));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0).map_err(io("reading"))?;
    let first = match format::parse_header(&bytes, node) {
        Ok(first) => first,
        // The header is synced before the first record is written: without a record after it, it never was.
        Err(_) if last && record_after(&bytes, HEADER_LEN, 0).is_none() => {
            remove(disk, path)?;
            out.dropped += len;
            return Ok(None);
        }
        Err(why) => return Err(corrupt(0, why)),
    };
    let mut segment = Segment {
        path: path.to_path_buf(),
        file,
        first,
        offsets: Vec::new(),
        end: HEADER_LEN as u64,
        synced: 0,
    };
    let mut entries = Vec::new();
    let bytes = Bytes::from(bytes);
    let mut at = HEADER_LEN;
    loop {
        match format::parse(&bytes, at) {
            Ok(None) => break,
            Ok(Some(r)) => {
                take(&mut segment, &mut entries, &mut out.committed, &bytes, at, &r)
                    .map_err(|why| corrupt(at, why))?;
                at = r.next;
            }
            Err(why) => {
                if !last || record_after(&bytes, at, at as u64).is_some() {
                    return Err(corrupt(at, why.to_owned()));
                }
                out.dropped += len - at as u64;
                segment.file.set_len(at as u64).map_err(io("cutting"))?;
                break;
            }
        }
    }
    segment.end = at as u64;
    segment.synced = segment.end;
    // What is read now counts as durable from here on; records that follow will say so.
    segment.file.sync_data().map_err(io("syncing"))?;
    if segment.offsets.is_empty() {
        remove(disk, path)?;
        return Ok(None);
    }
    Ok(Some(Found { segment, entries }))
}

fn take(
    segment: &mut Segment,
    entries: &mut Vec<Stored>,
    committed: &mut Option<LogId>,
    bytes: &Bytes,
    at: usize,
    r: &Record,
) -> Result<(), String> {
    if r.kind == Kind::Committed {
        *committed = Some(log_id(r.term, r.index)).max(*committed);
        return Ok(());
    }
    let next = segment.next();
    if r.index != next {
        return Err(format!("entry {} where {next} should stand", r.index));
    }
    segment.offsets.push(at as u64);
    entries.push(Stored { kind: r.kind, term: r.term, payload: bytes.slice(r.payload.clone()) });
    Ok(())
}

/// A whole record behind `from` that says: everything before an offset above `bad` was durable when I was written.
fn record_after(bytes: &[u8], from: usize, bad: u64) -> Option<Record> {
    (from..bytes.len())
        .step_by(8)
        .filter_map(|at| format::parse(bytes, at).ok().flatten())
        .find(|r| r.synced > bad)
}

/// Checks that the files follow on and takes what is not purged.
fn collect(disk: &dyn Disk, dir: &Path, found: Vec<Found>, out: &mut Loaded) -> Result<(), MetaStartError> {
    let mut next = out.first;
    for Found { segment, entries } in found {
        if segment.next() <= out.first {
            // Purged, and the process ended before it was removed.
            remove(disk, &segment.path)?;
            continue;
        }
        let skip = out.first.saturating_sub(segment.first);
        if segment.first + skip != next {
            return Err(MetaStartError::Corrupt {
                path: segment.path,
                offset: 0,
                why: format!(
                    "it begins at entry {} where {next} should stand: a file is missing",
                    segment.first
                ),
                dir: dir.to_path_buf(),
            });
        }
        next = segment.next();
        out.entries.extend(entries.into_iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)));
        out.segments.push(segment);
    }
    Ok(())
}

fn remove(disk: &dyn Disk, path: &Path) -> Result<(), MetaStartError> {
    disk.remove(path).map_err(|e| MetaStartError::io("removing", path, e))?;
    let dir = path.parent().unwrap_or(path);
    disk.sync_dir(dir).map_err(|e| MetaStartError::io("syncing", dir, e))
}
