//! One segment of a stopped bookie.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicI64, AtomicU64},
    },
};

use tidemill_runtime::io::{Disk, OpenMode};
use tidemill_types::Entry;

use crate::{
    boot::read_header,
    format::{
        control::{Listed, segment_name},
        record::Record,
        scan::scan,
    },
    segment::{IndexError, Segment},
};

/// How a segment came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// By adds.
    Log,
    /// By rewriting.
    Rewritten,
    /// Its header is bad.
    Unknown,
}

/// One segment.
#[derive(Clone, Debug)]
pub struct SegmentReport {
    /// Its number in the lane.
    pub number: u32,
    /// Its file name.
    pub name: String,
    /// How it came to be.
    pub kind: SegmentKind,
    /// Whether the control file names it.
    pub listed: bool,
    /// Whether it ends in a good footer.
    pub sealed: bool,
    /// Bytes of the file.
    pub len: u64,
    /// Number of its first group.
    pub first_group: u64,
    /// Number of its last group (first - 1 when there is none).
    pub last_group: u64,
    /// Groups, if they were read.
    pub groups: Option<u64>,
    /// Entries in it.
    pub entries: u64,
    /// Ledgers with entries in it.
    pub ledgers: u64,
    /// Bytes of entries.
    pub entry_bytes: u64,
    /// A torn group at the end: what a crash leaves, no damage.
    pub torn: bool,
    /// What is wrong.
    pub problems: Vec<String>,
}

pub(super) fn missing(number: u32) -> SegmentReport {
    SegmentReport {
        number,
        name: segment_name(number),
        kind: SegmentKind::Unknown,
        listed: true,
        sealed: false,
        len: 0,
        first_group: 0,
        last_group: 0,
        groups: None,
        entries: 0,
        ledgers: 0,
        entry_bytes: 0,
        torn: false,
        problems: vec!["it is listed and missing".to_owned()],
    }
}

pub(super) fn report(
    disk: &dyn Disk,
    dir: &Path,
    number: u32,
    listed: Option<Listed>,
    has_control: bool,
    verify: bool,
) -> io::Result<SegmentReport> {
    let path = dir.join(segment_name(number));
    let file = disk.open(&path, OpenMode::Read)?;
    let len = file.len()?;
    let header = read_header(&*file);
    let mut r = SegmentReport { len, listed: listed.is_some(), problems: Vec::new(), ..missing(number) };
    if has_control && listed.is_none() {
        r.problems.push("it is not listed: left over from a crash, or the control file is old".to_owned());
    }
    match header {
        Some(h) if listed.is_none_or(|l| l.uuid == h.uuid) => {
            r.kind = if h.rewritten { SegmentKind::Rewritten } else { SegmentKind::Log };
        }
        _ => r.problems.push("its header is bad".to_owned()),
    }
    let Some(uuid) = listed.map(|l| l.uuid).or(header.map(|h| h.uuid)) else { return Ok(r) };
    let segment = Segment {
        lane: 0,
        number,
        uuid,
        rewritten: r.kind == SegmentKind::Rewritten,
        path,
        file,
        first_group: header.map_or(1, |h| h.first_group),
        len: AtomicU64::new(len),
        live: AtomicI64::new(0),
        keep: AtomicBool::new(false),
        footer: OnceLock::new(),
    };
    r.first_group = segment.first_group;
    read_footer(&segment, listed, &mut r)?;
    if verify || !r.sealed {
        read_groups(&segment, verify, &mut r)?;
    }
    Ok(r)
}

fn read_footer(segment: &Segment, listed: Option<Listed>, r: &mut SegmentReport) -> io::Result<()> {
    let Some(footer) = segment.read_footer()? else {
        if listed.is_some_and(|l| l.sealed) {
            r.problems.push("its footer is bad".to_owned());
        }
        return Ok(());
    };
    r.sealed = true;
    r.last_group = footer.last_group;
    r.entries = u64::from(footer.rows);
    match segment.read_runs(&footer) {
        Ok(runs) => {
            r.ledgers = runs.iter().map(|x| x.ledger).collect::<BTreeSet<_>>().len() as u64;
            r.entry_bytes = runs.iter().map(|x| u64::from(x.bytes)).sum();
        }
        Err(IndexError::Io(e)) => return Err(e),
        Err(IndexError::Damaged) => r.problems.push("its directory is bad".to_owned()),
    }
    match segment.read_states(&footer) {
        Ok(_) => Ok(()),
        Err(IndexError::Io(e)) => Err(e),
        Err(IndexError::Damaged) => {
            r.problems.push("its checkpoint is bad".to_owned());
            Ok(())
        }
    }
}

fn read_groups(segment: &Segment, verify: bool, r: &mut SegmentReport) -> io::Result<()> {
    let (mut entries, mut bytes) = (0, 0);
    let mut ledgers = BTreeSet::new();
    let mut bad = Vec::new();
    let end = scan(&*segment.file, segment.uuid, segment.first_group, &mut |record, offset| {
        let Record::Add { header, len } = record else { return };
        entries += 1;
        bytes += u64::from(len);
        ledgers.insert(header.ledger);
        let mut b = vec![0; len as usize];
        if verify
            && (segment.file.read_exact_at(&mut b, offset).is_err() || Entry::decode(b.into()).is_err())
        {
            bad.push(format!("entry {} of ledger {} fails its check", header.entry, header.ledger));
        }
    })?;
    r.problems.extend(bad);
    r.problems.extend(end.damaged);
    r.groups = Some(end.groups);
    if r.sealed {
        if end.last_group < r.last_group {
            let what = format!("groups end at {}, its footer says {}", end.last_group, r.last_group);
            r.problems.push(what);
        }
    } else {
        r.torn = end.torn;
        r.last_group = end.last_group;
        r.entries = entries;
        r.entry_bytes = bytes;
        r.ledgers = ledgers.len() as u64;
    }
    Ok(())
}
