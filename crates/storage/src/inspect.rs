//! Looking into the folders of a stopped bookie: what a boot would find, without changing anything but the LOCK files.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};

use tidemill_runtime::io::Disk;
use tidemill_types::{EntryId, LedgerId};

use crate::{
    boot,
    config::EngineConfig,
    error::OpenError,
    report::{BootReport, LedgerSummary},
    scrub::check::check_segment,
    segment::Segment,
};

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// The file.
    pub path: PathBuf,
    /// Its number in the lane.
    pub number: u32,
    /// Whether it ends in a footer.
    pub sealed: bool,
    /// Made by rewriting, not by adds.
    pub rewritten: bool,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of entries that are live.
    pub live_bytes: u64,
    /// First and last commit group (last = first - 1 when there is none).
    pub groups: (u64, u64),
    /// Entries in it, dead ones too.
    pub entries: u64,
    /// With [`check`] only: what is damaged beside entries, if anything.
    pub damage: Option<String>,
    /// With [`check`] only: live entries that fail their check.
    pub damaged: Vec<(LedgerId, EntryId)>,
}

/// What the folders of a bookie hold.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// What a boot would report.
    pub boot: BootReport,
    /// The segments of all lanes.
    pub segments: Vec<SegmentReport>,
    /// The ledgers held, by id.
    pub ledgers: Vec<LedgerSummary>,
}

/// [`inspect`], and reads every sealed segment and checks it.
///
/// # Errors
/// As [`inspect`]; `Io` when a segment cannot be read.
pub fn check(disk: Arc<dyn Disk>, lanes: &[PathBuf]) -> Result<Inspection, OpenError> {
    look(disk, lanes, true)
}

/// Reads the lanes of a stopped bookie.
///
/// # Errors
/// Those of [`crate::Engine::open_scan`], `Locked` while the bookie runs; `Io` for a folder that does not exist.
pub fn inspect(disk: Arc<dyn Disk>, lanes: &[PathBuf]) -> Result<Inspection, OpenError> {
    look(disk, lanes, false)
}

fn look(disk: Arc<dyn Disk>, lanes: &[PathBuf], check: bool) -> Result<Inspection, OpenError> {
    for dir in lanes {
        // A boot would make the folder.
        disk.list(dir).map_err(|e| OpenError::io("listing", dir, e))?;
    }
    let boot = boot::scan(disk, EngineConfig::new(lanes.to_vec()))?;
    let mut segments = Vec::new();
    for lane in &boot.lanes {
        for (&number, s) in &lane.segments {
            let scanned = lane.unsealed.iter().find(|u| u.segment.number == number);
            let footer = s.footer.get();
            let last = footer.map(|f| f.last_group).or(scanned.map(|u| u.end.last_group)).unwrap_or(0);
            let rows = footer.map(|f| f.rows).or(scanned.map(|u| u.built.rows)).unwrap_or(0);
            let (damage, damaged) = if check { damage_of(&boot, s)? } else { Default::default() };
            segments.push(SegmentReport {
                path: s.path.clone(),
                number,
                sealed: footer.is_some(),
                rewritten: s.rewritten,
                bytes: s.len.load(Ordering::Relaxed),
                live_bytes: s.live(),
                groups: (s.first_group, last),
                entries: u64::from(rows),
                damage,
                damaged,
            });
        }
    }
    let ledgers = boot
        .ledgers
        .values()
        .map(|l| {
            let state = l.state.lock();
            LedgerSummary {
                ledger: l.id,
                fenced: state.fence_durable,
                lac: state.lac(),
                last_entry: EntryId(state.last),
                bytes: state.bytes(),
            }
        })
        .collect();
    Ok(Inspection { boot: boot.report, segments, ledgers })
}

type Damage = (Option<String>, Vec<(LedgerId, EntryId)>);

fn damage_of(boot: &boot::Boot, s: &Segment) -> Result<Damage, OpenError> {
    let live = |ledger: LedgerId, row: u32| {
        boot.ledgers.get(&ledger).is_some_and(|l| {
            l.state.lock().extents.iter().any(|x| x.segment == s.number && x.row == row && l.lane == s.lane)
        })
    };
    let checked = check_segment(s, &live, &|_| true).map_err(|e| OpenError::io("reading", &s.path, e))?;
    let checked = checked.unwrap_or_default();
    let part = checked.bad_part.map(|p| format!("{p:?}").to_lowercase());
    Ok((part, checked.bad.into_iter().map(|(l, e)| (l, EntryId(e))).collect()))
}
