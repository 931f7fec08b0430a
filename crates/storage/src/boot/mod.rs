//! Boot: lock, read cookies, open sealed segments by their footers, scan the others, then seal them and go on in a new one (R16, R18, R19).

mod finish;
mod identity;
mod lane;
mod listing;
mod replay;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use tidemill_runtime::io::{Disk, Lock};
use tidemill_types::{ClusterId, Incarnation, LanePosition, LedgerId};

pub(crate) use self::finish::finish;
use self::{
    identity::{Lanes, identify},
    lane::{ScannedLane, Unsealed, scan_lane},
};
use crate::{
    config::EngineConfig,
    error::OpenError,
    format::{
        control,
        cookie::{self, Cookie},
    },
    ledger::Ledger,
    report::{BootReport, Loss},
};

/// Name of the lock file in a lane folder.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// Everything that a scan found.
#[derive(Debug)]
pub(crate) struct Boot {
    pub(crate) config: EngineConfig,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) locks: Vec<Box<dyn Lock>>,
    pub(crate) cookies: Vec<Cookie>,
    pub(crate) lanes: Vec<ScannedLane>,
    pub(crate) ledgers: BTreeMap<LedgerId, Arc<Ledger>>,
    pub(crate) report: BootReport,
    pub(crate) pending_written: bool,
}

fn check_config(config: &EngineConfig) -> Result<(), OpenError> {
    let fail = |why: &str| Err(OpenError::Config(why.to_owned()));
    if config.lanes.is_empty() || config.lanes.len() > cookie::MAX_LANES {
        return fail("a bookie needs 1 to 256 lane folders");
    }
    if config.segment_bytes < 64 << 10 || config.segment_bytes > 2 << 30 {
        return fail("the segment size must be between 64 KiB and 2 GiB");
    }
    if config.reserve_bytes < crate::lane::reserve::LEAST {
        return fail("the reserve must be at least 64 KiB");
    }
    let mut dirs: Vec<&PathBuf> = config.lanes.iter().collect();
    dirs.sort();
    dirs.dedup();
    if dirs.len() != config.lanes.len() {
        return fail("two lanes have the same folder");
    }
    Ok(())
}

/// Locks and reads everything. Writes nothing but LOCK files.
pub(crate) fn scan(disk: Arc<dyn Disk>, config: EngineConfig) -> Result<Boot, OpenError> {
    check_config(&config)?;
    let mut locks = Vec::new();
    for dir in &config.lanes {
        disk.create_dir(dir).map_err(|e| OpenError::io("creating folder", dir, e))?;
        locks.push(lock(&*disk, dir)?);
    }
    let Lanes { cookies, served, fresh, mut losses } = identify(&*disk, &config)?;
    let mut ledgers = BTreeMap::new();
    let mut lanes = Vec::new();
    for (i, (dir, cookie)) in config.lanes.iter().zip(&cookies).enumerate() {
        let index = u16::try_from(i).unwrap_or(u16::MAX);
        lanes.push(scan_lane(&*disk, dir, index, cookie.lane, served[i], &mut ledgers, &mut losses)?);
    }
    let report = report(&cookies, &lanes, fresh, ledgers.len(), losses);
    Ok(Boot { config, disk, locks, cookies, lanes, ledgers, report, pending_written: false })
}

fn lock(disk: &dyn Disk, dir: &std::path::Path) -> Result<Box<dyn Lock>, OpenError> {
    disk.lock(&dir.join(LOCK_NAME)).map_err(|e| {
        if e.kind() == std::io::ErrorKind::WouldBlock {
            OpenError::Locked { path: dir.to_path_buf() }
        } else {
            OpenError::io("locking", dir, e)
        }
    })
}

fn report(
    cookies: &[Cookie],
    lanes: &[ScannedLane],
    fresh: bool,
    ledgers: usize,
    losses: Vec<Loss>,
) -> BootReport {
    let first = &cookies[0];
    let positions = lanes
        .iter()
        .map(|l| LanePosition { lane: l.uuid, segment: u64::from(l.last_number), group: l.last_group })
        .collect();
    for loss in &losses {
        tracing::error!(%loss, "data may be gone");
    }
    BootReport {
        fresh,
        bookie: first.bookie,
        cluster: (!fresh).then_some(first.cluster),
        incarnation: cookies.iter().find_map(|c| c.incarnation),
        pending: first.pending,
        limbo: cookies.iter().any(|c| c.limbo),
        losses,
        positions,
        ledgers,
        scanned_segments: lanes.iter().map(|l| l.unsealed.len()).sum(),
        torn_groups: lanes.iter().map(|l| l.torn).sum(),
    }
}

impl Boot {
    /// R16, first step.
    pub(crate) fn write_pending(
        &mut self,
        cluster: ClusterId,
        incarnation: Incarnation,
    ) -> Result<(), OpenError> {
        if let Some(found) = self.report.cluster
            && found != cluster
        {
            return Err(OpenError::OtherCluster { found, expected: cluster });
        }
        if incarnation.0 == 0 {
            return Err(OpenError::Config("an incarnation must not be 0".to_owned()));
        }
        for cookie in &mut self.cookies {
            cookie.cluster = cluster;
            cookie.pending = Some(incarnation);
        }
        self.write_cookies()?;
        for lane in self.lanes.iter().filter(|l| l.new) {
            // Before the cookie is confirmed: from then on a lane without a control file counts as damaged.
            let path = lane.dir.join(control::NAME);
            tidemill_runtime::io::write_durably(&*self.disk, &path, &lane.control.encode())
                .map_err(|e| OpenError::io("writing", &path, e))?;
        }
        self.report.pending = Some(incarnation);
        self.pending_written = true;
        Ok(())
    }

    /// Writes all cookies, those of lanes that had none first: a crash in between must not look like the loss of such a lane.
    pub(crate) fn write_cookies(&self) -> Result<(), OpenError> {
        let mut order: Vec<usize> = (0..self.cookies.len()).collect();
        order.sort_by_key(|&i| !self.lanes[i].new);
        for i in order {
            let path = self.config.lanes[i].join(cookie::NAME);
            tidemill_runtime::io::write_durably(&*self.disk, &path, &self.cookies[i].encode())
                .map_err(|e| OpenError::io("writing", &path, e))?;
        }
        Ok(())
    }
}
