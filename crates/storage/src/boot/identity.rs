//! Whose lanes these are (R16).

use std::path::Path;

use tidemill_runtime::io::{Disk, TEMP_SUFFIX, read_all};
use tidemill_types::{ClusterId, MemberId};
use uuid::Uuid;

use super::LOCK_NAME;
use crate::{
    config::EngineConfig,
    error::OpenError,
    format::cookie::{self, Cookie},
    report::Loss,
};

/// The lanes' cookies, as they shall be written next.
pub(crate) struct Lanes {
    pub(crate) cookies: Vec<Cookie>,
    /// All lanes were empty.
    pub(crate) fresh: bool,
    /// Which lanes were part of a boot that got to the end: from then on something missing there is a loss.
    pub(crate) served: Vec<bool>,
    pub(crate) losses: Vec<Loss>,
}

/// Names in a lane folder that do not make it "not empty".
fn is_harmless(name: &str) -> bool {
    name == LOCK_NAME || name == "lost+found" || name.ends_with(TEMP_SUFFIX)
}

fn read_cookie(disk: &dyn Disk, dir: &Path) -> Result<Option<Cookie>, OpenError> {
    let path = dir.join(cookie::NAME);
    let bytes = read_all(disk, &path, cookie::MAX_LEN).map_err(|e| OpenError::io("reading", &path, e))?;
    if let Some(bytes) = bytes {
        let cookie = Cookie::decode(&bytes)
            .map_err(|why| OpenError::BadFile { path: path.clone(), why: why.to_string() })?;
        return Ok(Some(cookie));
    }
    let items = disk.list(dir).map_err(|e| OpenError::io("listing", dir, e))?;
    let found: Vec<String> = items.into_iter().map(|i| i.name).filter(|n| !is_harmless(n)).collect();
    if found.is_empty() {
        return Ok(None);
    }
    let more = if found.len() > 5 { format!(" and {} more", found.len() - 5) } else { String::new() };
    let found = found.iter().take(5).cloned().collect::<Vec<_>>().join(", ") + &more;
    Err(OpenError::NoCookie { path: dir.to_path_buf(), found })
}

/// Reads the cookies of all lanes and compares them.
pub(crate) fn identify(disk: &dyn Disk, config: &EngineConfig) -> Result<Lanes, OpenError> {
    let found: Vec<Option<Cookie>> =
        config.lanes.iter().map(|dir| read_cookie(disk, dir)).collect::<Result<_, _>>()?;
    let mut losses = Vec::new();
    let served: Vec<bool> =
        found.iter().map(|c| c.as_ref().is_some_and(|c| c.incarnation.is_some())).collect();
    let known: Vec<(&Path, &Cookie)> =
        config.lanes.iter().zip(&found).filter_map(|(d, c)| Some((d.as_path(), c.as_ref()?))).collect();
    let fresh = known.is_empty();
    let first = known.first().map(|(_, c)| (*c).clone());
    for (dir, c) in &known {
        let expected = first.as_ref().unwrap_or(c);
        if c.cluster != expected.cluster {
            return Err(OpenError::OtherCluster { found: c.cluster, expected: expected.cluster });
        }
        if c.bookie != expected.bookie {
            let path = dir.to_path_buf();
            return Err(OpenError::MixedBookies { path, found: c.bookie, expected: expected.bookie });
        }
    }
    let born = served.contains(&true);
    let newest = newest(&known, &mut losses);
    let mut uuids: Vec<Option<MemberId>> = found.iter().map(|c| c.as_ref().map(|c| c.lane)).collect();
    let listed = known.iter().flat_map(|(_, c)| c.lanes.iter().copied());
    let mut missing: Vec<MemberId> = listed.filter(|l| !uuids.contains(&Some(*l))).collect();
    missing.sort();
    missing.dedup();
    if born {
        losses.extend(missing.iter().map(|&lane| Loss::LaneMissing { lane }));
        missing.clear();
    }
    for uuid in &mut uuids {
        // Nothing was ever served: an empty lane takes the place of one that a first boot did not get to.
        let next = || missing.pop().unwrap_or_else(|| MemberId((config.new_uuid)()));
        uuid.get_or_insert_with(next);
    }
    let lanes: Vec<MemberId> = uuids.into_iter().flatten().collect();
    let bookie = first.as_ref().map_or_else(|| MemberId((config.new_uuid)()), |c| c.bookie);
    let limbo = known.iter().any(|(_, c)| c.limbo);
    let cookies = lanes
        .iter()
        .zip(&served)
        .map(|(&lane, &served)| Cookie {
            cluster: first.as_ref().map_or(ClusterId(Uuid::nil()), |c| c.cluster),
            bookie,
            lane,
            incarnation: newest.as_ref().filter(|_| served).and_then(|c| c.incarnation),
            pending: newest.as_ref().and_then(|c| c.pending),
            limbo,
            lanes: lanes.clone(),
        })
        .collect();
    Ok(Lanes { cookies, served, fresh, losses })
}

/// The cookie of the latest boot. Another confirmed incarnation on a lane is fine if that lane was about to get there (its pending one is the
/// newest confirmed one); else the lane is an older copy.
fn newest(known: &[(&Path, &Cookie)], losses: &mut Vec<Loss>) -> Option<Cookie> {
    let (_, first) = known.first()?;
    let mut newest = (*first).clone();
    for (_, c) in known {
        if c.incarnation.is_some() && (newest.incarnation.is_none() || newest.pending == c.incarnation) {
            newest = (*c).clone();
        }
    }
    for (dir, c) in known {
        let behind = newest.incarnation.is_some() && c.pending == newest.incarnation;
        // A lane that was never confirmed holds nothing.
        if c.incarnation.is_some() && c.incarnation != newest.incarnation && !behind {
            losses.push(Loss::LaneFromOtherBoot { path: dir.to_path_buf() });
        }
        if newest.pending.is_none() && c.incarnation == newest.incarnation {
            newest.pending = c.pending;
        }
    }
    Some(newest)
}
