//! Reading one lane.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64},
    },
};

use tidemill_runtime::io::{Disk, OpenMode};
use tidemill_types::{LedgerId, MemberId};

use super::{
    listing::{self, Listing},
    replay::Replay,
};
use crate::{
    error::OpenError,
    format::{
        control::{Control, Listed, segment_name},
        footer::Footer,
        index::{BuiltIndex, Run},
        scan::ScanEnd,
        states::States,
    },
    lane::Hidden,
    ledger::Ledger,
    report::Loss,
    segment::{IndexError, Segment},
};

/// A segment that was scanned, and the index that its footer will get.
#[derive(Debug)]
pub(crate) struct Unsealed {
    pub(crate) segment: Arc<Segment>,
    pub(crate) end: ScanEnd,
    pub(crate) built: BuiltIndex,
}

/// One lane as read.
#[derive(Debug)]
pub(crate) struct ScannedLane {
    pub(crate) dir: PathBuf,
    pub(crate) uuid: MemberId,
    pub(crate) new: bool,
    pub(crate) control: Control,
    pub(crate) leftovers: Vec<PathBuf>,
    pub(crate) strays: Vec<PathBuf>,
    pub(crate) segments: BTreeMap<u32, Arc<Segment>>,
    pub(crate) unsealed: Vec<Unsealed>,
    /// Segments whose header is written again, so that the finding does not come back with every boot.
    pub(crate) bad_headers: Vec<Arc<Segment>>,
    pub(crate) hidden: BTreeMap<LedgerId, Hidden>,
    pub(crate) last_number: u32,
    pub(crate) last_group: u64,
    pub(crate) torn: usize,
}

/// A listed segment after its footer was looked for.
struct Opened {
    segment: Arc<Segment>,
    bad_header: bool,
    sealed: Option<(Footer, Vec<Run>)>,
}

fn damaged(segment: &Segment, what: impl Into<String>) -> Loss {
    Loss::SegmentDamaged { path: segment.path.clone(), what: what.into() }
}

fn open_segment(
    disk: &dyn Disk,
    dir: &Path,
    lane: u16,
    number: u32,
    listed: Listed,
    losses: &mut Vec<Loss>,
) -> Result<Option<(Segment, bool)>, OpenError> {
    let path = dir.join(segment_name(number));
    let file = match disk.open(&path, OpenMode::ReadWrite) {
        Ok(f) => f,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            losses.push(Loss::SegmentMissing { path });
            return Ok(None);
        }
        Err(e) => return Err(OpenError::io("opening", &path, e)),
    };
    let len = file.len().map_err(|e| OpenError::io("reading", &path, e))?;
    let header = listing::read_header(&*file).filter(|h| h.uuid == listed.uuid && h.number == number);
    let segment = Segment {
        lane,
        number,
        uuid: listed.uuid,
        rewritten: listed.rewritten,
        path,
        file,
        first_group: header.map_or(1, |h| h.first_group),
        len: AtomicU64::new(len),
        live: AtomicI64::new(0),
        keep: AtomicBool::new(false),
        footer: OnceLock::new(),
    };
    let bad_header = header.is_none();
    if bad_header {
        losses.push(damaged(&segment, "its header is bad"));
    }
    Ok(Some((segment, bad_header)))
}

/// The directory of a sealed segment; `None` when it has to be scanned.
fn read_sealed(
    segment: &Segment,
    listed: Listed,
    losses: &mut Vec<Loss>,
) -> Result<Option<(Footer, Vec<Run>)>, OpenError> {
    // Not known as sealed: a footer may be there while the index before it got lost in a crash. Only the groups count.
    if !listed.sealed {
        return Ok(None);
    }
    let io = |e| OpenError::io("reading", &segment.path, e);
    let Some(footer) = segment.read_footer().map_err(io)? else {
        losses.push(damaged(segment, "its footer is bad"));
        return Ok(None);
    };
    match segment.read_runs(&footer) {
        Ok(runs) => Ok(Some((footer, runs))),
        Err(IndexError::Io(e)) => Err(io(e)),
        Err(IndexError::Damaged) => {
            losses.push(damaged(segment, "its directory is bad"));
            Ok(None)
        }
    }
}

/// The checkpoint of the newest log segment that has a good one. One with a bad one will be scanned: its state records count.
fn checkpoint(opened: &mut [Opened], losses: &mut Vec<Loss>) -> Result<States, OpenError> {
    let mut with: Vec<(u64, u32, usize, Footer)> = opened
        .iter()
        .enumerate()
        .filter_map(|(i, o)| o.sealed.as_ref().map(|(f, _)| (f.last_group, o.segment.number, i, *f)))
        .filter(|(.., footer)| footer.has_states)
        .collect();
    with.sort_by_key(|&(group, number, ..)| (group, number));
    while let Some((.., i, footer)) = with.pop() {
        let segment = &opened[i].segment;
        match segment.read_states(&footer) {
            Ok(states) => return Ok(states),
            Err(IndexError::Io(e)) => return Err(OpenError::io("reading", &segment.path, e)),
            Err(IndexError::Damaged) => {
                losses.push(damaged(segment, "its checkpoint is bad"));
                opened[i].sealed = None;
            }
        }
    }
    Ok(States::default())
}

/// Reads a lane into `ledgers`.
pub(crate) fn scan_lane(
    disk: &dyn Disk,
    dir: &Path,
    index: u16,
    uuid: MemberId,
    had_data: bool,
    ledgers: &mut BTreeMap<LedgerId, Arc<Ledger>>,
    losses: &mut Vec<Loss>,
) -> Result<ScannedLane, OpenError> {
    let Listing { mut control, leftovers, strays } = listing::list(disk, dir, uuid, had_data, losses)?;
    let mut opened = Vec::new();
    for (&number, &listed) in &control.segments {
        let Some((mut segment, bad_header)) = open_segment(disk, dir, index, number, listed, losses)? else {
            continue;
        };
        let sealed = read_sealed(&segment, listed, losses)?;
        if let Some((footer, _)) = &sealed {
            segment.first_group = footer.first_group;
        }
        opened.push(Opened { segment: Arc::new(segment), bad_header, sealed });
    }
    let last_log = opened.iter().filter(|o| !o.segment.rewritten).map(|o| o.segment.number).max();
    let states = checkpoint(&mut opened, losses)?;
    let mut replay = Replay::new(index, ledgers, losses, &states);
    for o in &opened {
        if let Some((footer, runs)) = &o.sealed {
            // Set before anything may look an entry up.
            let _ = o.segment.footer.set(*footer);
            replay.sealed(&o.segment, runs);
        }
    }
    let mut lane = ScannedLane {
        dir: dir.to_path_buf(),
        uuid,
        new: !had_data,
        control: Control { lane: uuid, next_number: 1, segments: BTreeMap::new() },
        leftovers,
        strays,
        segments: BTreeMap::new(),
        unsealed: Vec::new(),
        bad_headers: Vec::new(),
        hidden: BTreeMap::new(),
        last_number: 0,
        last_group: 0,
        torn: 0,
    };
    for o in opened {
        let number = o.segment.number;
        let last_group = if let Some((footer, _)) = &o.sealed {
            footer.last_group
        } else {
            let scanned = replay.scan(&o.segment)?;
            lane.torn += usize::from(scanned.end.torn);
            if scanned.end.torn {
                tracing::debug!(target: "tidemill_rare", "torn group dropped");
            }
            let listed = control.segments.get(&number);
            if let Some(what) = &scanned.end.damaged {
                replay.losses.push(damaged(&o.segment, what.clone()));
            } else if last_log != Some(number) && listed.is_some_and(|l| !l.sealed) {
                // The next segment is opened after this one was sealed.
                replay.losses.push(damaged(&o.segment, "it has no footer and is not the last"));
            }
            let last_group = scanned.end.last_group;
            lane.unsealed.push(scanned);
            last_group
        };
        if !o.segment.rewritten && number >= lane.last_number {
            lane.last_number = number;
            lane.last_group = lane.last_group.max(last_group);
        }
        if o.bad_header {
            lane.bad_headers.push(Arc::clone(&o.segment));
        }
        lane.segments.insert(number, o.segment);
    }
    let highest_bound = replay.highest_bound();
    lane.hidden = replay.finish();
    let highest = control.segments.keys().max().map_or(1, |n| n + 1);
    // A deletion hides everything below its bound: no new segment may get such a number.
    control.next_number = control.next_number.max(highest).max(highest_bound);
    // What is missing was reported; the limbo flag remembers it from here on.
    control.segments.retain(|n, _| lane.segments.contains_key(n));
    lane.control = control;
    Ok(lane)
}
