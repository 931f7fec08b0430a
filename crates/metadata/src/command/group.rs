//! `ConfigureGroup`, `RemoveGroup`.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemill_types::meta::{Change, Rejection, Reply};
use tidemill_types::{Assignor, GroupConfig, GroupName, GroupRecord, StartAt, Version};

use crate::State;
use crate::limits::{MAX_GROUPS, MAX_NAME_LEN, MAX_PARTITIONS, MAX_STATIC_ELEMENTS};
use crate::reject::{conflict, invalid, not_found};

fn check_config(c: &GroupConfig) -> Result<(), Rejection> {
    for (field, ms, least) in [("session_ms", c.session_ms, 100), ("rebalance_ms", c.rebalance_ms, 100)] {
        if ms.is_some_and(|v| !(least..=3_600_000).contains(&v)) {
            return Err(invalid(field, format_args!("{least} to 3600000")));
        }
    }
    if c.offsets_retention_ms.is_some_and(|v| v == 0 || v > u64::MAX >> 1) {
        return Err(invalid("offsets_retention_ms", "above 0"));
    }
    if matches!(c.start_at, Some(StartAt::Timestamp(ms)) if ms < 0) {
        return Err(invalid("start_at", "ms since the Unix epoch, 0 or above"));
    }
    if c.last_reset.as_ref().is_some_and(|r| r.is_empty() || r.len() > MAX_NAME_LEN) {
        return Err(invalid("last_reset", format_args!("1 to {MAX_NAME_LEN} bytes")));
    }
    if c.static_assignment.is_empty() != (c.assignor != Assignor::Static) {
        return Err(invalid("static_assignment", "given exactly with the assignor Static"));
    }
    let mut seen = BTreeSet::new();
    for s in &c.static_assignment {
        if s.instance.is_empty() || s.instance.len() > MAX_NAME_LEN {
            return Err(invalid(
                "static_assignment",
                format_args!("an instance of 1 to {MAX_NAME_LEN} bytes"),
            ));
        }
        for p in &s.partitions {
            if *p >= MAX_PARTITIONS || !seen.insert((&s.topic, *p)) {
                return Err(invalid("static_assignment", "each partition once, below the limit of a topic"));
            }
        }
    }
    if seen.len() > MAX_STATIC_ELEMENTS || c.static_assignment.len() > MAX_STATIC_ELEMENTS {
        return Err(invalid("static_assignment", format_args!("at most {MAX_STATIC_ELEMENTS} partitions")));
    }
    Ok(())
}

fn check_version(wanted: Option<Version>, current: Version) -> Result<(), Rejection> {
    match wanted {
        Some(v) if v != current => Err(Rejection::VersionMismatch { current }),
        _ => Ok(()),
    }
}

impl State {
    pub(crate) fn configure_group(
        &mut self,
        name: &GroupName,
        version: Option<Version>,
        config: &GroupConfig,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        check_config(config)?;
        let old = self.groups.get(name);
        let current = old.map_or(Version(0), |g| g.version);
        check_version(version, current)?;
        if let Some(same) = old.filter(|g| g.config == *config) {
            return Ok(Reply::Group(GroupRecord::clone(same)));
        }
        if old.is_none() && self.groups.len() >= MAX_GROUPS {
            return Err(conflict(format_args!("at most {MAX_GROUPS} configured groups")));
        }
        let record =
            GroupRecord { name: name.clone(), version: Version(current.0 + 1), config: config.clone() };
        out.push(Change::Group(record.clone()));
        self.groups.insert(name.clone(), Arc::new(record.clone()));
        Ok(Reply::Group(record))
    }

    pub(crate) fn remove_group(
        &mut self,
        name: &GroupName,
        version: Option<Version>,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let old = self.groups.get(name).ok_or_else(|| not_found("group", name))?;
        check_version(version, old.version)?;
        self.groups.remove(name);
        out.push(Change::GroupRemoved(name.clone()));
        Ok(Reply::Done)
    }
}
