//! The last steps of a boot: confirm, seal what was scanned, open new segments.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use parking_lot::{Mutex, RwLock};
use tidemill_types::LanePosition;

use super::{Boot, ScannedLane, Unsealed};
use crate::{
    error::OpenError,
    format::{
        control::{Control, Listed},
        header::SegmentHeader,
    },
    lane::{Core, Lane, control::ControlFile, queue::Queue, reserve::Need, roll::RollError, seal},
    ledgers::Ledgers,
    report::FinishBoot,
    segment::Segment,
    shared::Shared,
};

/// R16, third step and everything behind it.
pub(crate) fn finish(mut boot: Boot, finish: FinishBoot) -> Result<Shared, OpenError> {
    if !boot.pending_written {
        return Err(OpenError::Config("write_pending must come before finish".to_owned()));
    }
    // R15: what was found missing makes limbo, and limbo ends only when it is cleared by name.
    let limbo = finish.limbo || boot.report.limbo || boot.report.found_loss();
    for cookie in &mut boot.cookies {
        cookie.incarnation = cookie.pending.take();
        cookie.limbo = limbo;
    }
    boot.write_cookies()?;
    let Boot { config, disk, locks, cookies, lanes: scanned, ledgers, .. } = boot;
    let mut lanes = Vec::new();
    let mut rests = Vec::new();
    for (i, s) in scanned.into_iter().enumerate() {
        let (lane, rest) = lane(i, s, config.queue_bytes);
        lanes.push(Arc::new(lane));
        rests.push(rest);
    }
    let mut shared = Shared::new(config, disk, Ledgers::new(ledgers, finish.mark), lanes, cookies, locks);
    for (lane, rest) in shared.lanes.iter().zip(&rests) {
        settle(&shared, lane, rest)?;
    }
    let mut cores = Vec::new();
    for lane in &shared.lanes {
        let next_group = lane.position.lock().group + 1;
        let mut core = Core::new(Arc::clone(lane), None, next_group);
        core.find_reserve(&shared);
        // Without room the lane starts read-only; what must get through then takes the reserve.
        match core.roll(&shared, Need::Plain) {
            Ok(()) | Err(RollError::Stalled) => {}
            Err(RollError::Fatal(p)) => {
                return Err(OpenError::Io {
                    what: p.what,
                    path: p.path,
                    source: std::io::Error::other(p.why),
                });
            }
        }
        core.look_at_space(&shared, shared.config.clock.boottime());
        cores.push(Mutex::new(core));
    }
    shared.cores = cores;
    Ok(shared)
}

/// What of a scan does not go into the lane.
struct Rest {
    unsealed: Vec<Unsealed>,
    bad_headers: Vec<Arc<Segment>>,
    leftovers: Vec<std::path::PathBuf>,
    strays: Vec<std::path::PathBuf>,
    control: Control,
}

fn lane(index: usize, s: ScannedLane, queue_bytes: usize) -> (Lane, Rest) {
    let position = LanePosition { lane: s.uuid, segment: u64::from(s.last_number), group: s.last_group };
    let lane = Lane {
        index: u16::try_from(index).unwrap_or(u16::MAX),
        uuid: s.uuid,
        queue: Queue::new(queue_bytes),
        segments: RwLock::new(s.segments),
        control: Mutex::new(ControlFile::new(&s.dir, s.control.clone())),
        hidden: Mutex::new(s.hidden),
        position: Mutex::new(position),
        space: AtomicU8::new(0),
        free_bytes: AtomicU64::new(0),
        total_bytes: AtomicU64::new(0),
        reserve_bytes: AtomicU64::new(0),
        dir: s.dir,
    };
    let rest = Rest {
        unsealed: s.unsealed,
        bad_headers: s.bad_headers,
        leftovers: s.leftovers,
        strays: s.strays,
        control: s.control,
    };
    (lane, rest)
}

/// Brings the folder into the state that the next boot expects. Every step may be the last one before a crash: it is done again then.
fn settle(shared: &Shared, lane: &Lane, rest: &Rest) -> Result<(), OpenError> {
    for path in &rest.strays {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".lost");
        let moved = shared.disk.rename(path, std::path::Path::new(&aside));
        moved.map_err(|e| OpenError::io("moving aside", path, e))?;
    }
    for s in &rest.bad_headers {
        let header = SegmentHeader {
            lane: lane.uuid,
            uuid: s.uuid,
            number: s.number,
            rewritten: s.rewritten,
            first_group: s.first_group,
        };
        let written = s.file.write_blocks_at(&[&header.encode()], 0).and_then(|()| s.file.sync_data());
        written.map_err(|e| OpenError::io("repairing the header of", &s.path, e))?;
    }
    for u in &rest.unsealed {
        seal_scanned(shared, lane, u)?;
    }
    let mut control = lane.control.lock();
    let path = control.path().to_path_buf();
    control
        .change(&*shared.disk, |c| {
            *c = rest.control.clone();
            for (number, listed) in &mut c.segments {
                *listed = Listed { sealed: true, ..*listed };
                debug_assert!(lane.segment(*number).is_some());
            }
        })
        .map_err(|e| OpenError::io("writing", &path, e.into()))?;
    drop(control);
    for path in &rest.leftovers {
        match shared.disk.remove(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(OpenError::io("removing", path, e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// R19: a scanned segment is never appended to.
fn seal_scanned(shared: &Shared, lane: &Lane, u: &Unsealed) -> Result<(), OpenError> {
    let states = seal::checkpoint(shared, lane);
    let states = (!u.segment.rewritten).then_some(&states);
    let tail = seal::tail(&u.segment, u.end.last_group, u.end.data_end, &u.built, states);
    let len = tail.footer.file_len();
    let io = |e| OpenError::io("sealing", &u.segment.path, e);
    u.segment.file.write_blocks_at(&[&tail.bytes], u.end.data_end).map_err(io)?;
    u.segment.file.set_len(len).map_err(io)?;
    u.segment.file.sync_data().map_err(io)?;
    u.segment.len.store(len, Ordering::Relaxed);
    let _ = u.segment.footer.set(tail.footer);
    Ok(())
}
