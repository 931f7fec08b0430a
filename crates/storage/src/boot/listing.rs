//! Which segment files of a lane count: those that the control file names.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tidemill_runtime::io::{Disk, File, OpenMode, TEMP_SUFFIX, read_all};
use tidemill_types::MemberId;

use crate::{
    error::OpenError,
    format::{
        BLOCK_LEN,
        control::{self, Control, Listed},
        header::SegmentHeader,
        scan::has_groups,
    },
    report::Loss,
};

/// The control file, checked against the folder.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) control: Control,
    /// Left over from a crash: removed when the boot is finished.
    pub(crate) leftovers: Vec<PathBuf>,
    /// Hold data and are not named: moved aside.
    pub(crate) strays: Vec<PathBuf>,
}

pub(crate) fn read_header(file: &dyn File) -> Option<SegmentHeader> {
    let mut block = vec![0; BLOCK_LEN];
    file.read_exact_at(&mut block, 0).ok()?;
    SegmentHeader::decode(&block)
}

fn read_control(disk: &dyn Disk, dir: &Path, lane: MemberId) -> Result<Option<Control>, OpenError> {
    let path = dir.join(control::NAME);
    let bytes = read_all(disk, &path, control::MAX_LEN).map_err(|e| OpenError::io("reading", &path, e))?;
    let Some(bytes) = bytes else { return Ok(None) };
    match Control::decode(&bytes) {
        Ok(c) if c.lane == lane => Ok(Some(c)),
        Ok(_) => Ok(None),
        Err(why) => {
            tracing::error!(path = %path.display(), %why, "the control file cannot be understood");
            Ok(None)
        }
    }
}

/// Reads the control file. Without one all segments of this lane are taken, and that is a loss if the lane had data.
pub(crate) fn list(
    disk: &dyn Disk,
    dir: &Path,
    lane: MemberId,
    had_data: bool,
    losses: &mut Vec<Loss>,
) -> Result<Listing, OpenError> {
    let items = disk.list(dir).map_err(|e| OpenError::io("listing", dir, e))?;
    let found = read_control(disk, dir, lane)?;
    let adopt = found.is_none();
    if adopt && had_data {
        losses.push(Loss::ControlMissing { path: dir.to_path_buf() });
    }
    let mut control = found.unwrap_or(Control { lane, next_number: 1, segments: Default::default() });
    let known_below = control.next_number;
    let (mut leftovers, mut strays) = (Vec::new(), Vec::new());
    for item in items {
        let path = dir.join(&item.name);
        if item.name.ends_with(TEMP_SUFFIX) {
            leftovers.push(path);
            continue;
        }
        let Some(number) = control::segment_number(&item.name) else { continue };
        if control.segments.contains_key(&number) {
            continue;
        }
        let file = disk.open(&path, OpenMode::Read).map_err(|e| OpenError::io("opening", &path, e))?;
        let file: Arc<dyn File> = file;
        let header = read_header(&*file);
        if adopt && let Some(h) = header {
            let listed = Listed { uuid: h.uuid, sealed: false, rewritten: h.rewritten };
            control.segments.insert(number, listed);
        } else if !adopt && number < known_below && header.is_some() {
            // It was listed, or being made, and was taken off the list before it was removed.
            leftovers.push(path);
        } else if !adopt && header.is_some_and(|h| h.rewritten) {
            leftovers.push(path);
        } else if has_groups(&*file).map_err(|e| OpenError::io("reading", &path, e))? {
            // A header that cannot be parsed means keep (R21); groups that no list knows mean that the list is old.
            losses.push(Loss::SegmentUnlisted { path: path.clone() });
            strays.push(path);
        } else {
            leftovers.push(path);
        }
        control.next_number = control.next_number.max(number + 1);
    }
    Ok(Listing { control, leftovers, strays })
}
