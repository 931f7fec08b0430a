//! Reading a segment group by group (R19).

use std::io;

use tidemill_runtime::io::File;
use uuid::Uuid;

use super::{
    BLOCK, BLOCK_LEN,
    group::{self, GROUP_HEAD, GroupHeader},
    record::{self, Record},
};

/// How a scan ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScanEnd {
    /// End of the last valid group.
    pub(crate) data_end: u64,
    /// Its number, or the first one minus one.
    pub(crate) last_group: u64,
    pub(crate) groups: u64,
    /// A torn group was dropped.
    pub(crate) torn: bool,
    /// A bad group with a valid later one, or records that make no sense: corruption.
    pub(crate) damaged: Option<String>,
}

fn group_at(file: &dyn File, uuid: Uuid, at: u64, len: u64) -> io::Result<Option<(GroupHeader, Vec<u8>)>> {
    if at + BLOCK > len {
        return Ok(None);
    }
    let mut bytes = vec![0; BLOCK_LEN];
    file.read_exact_at(&mut bytes, at)?;
    let Some(header) = GroupHeader::parse(&bytes) else { return Ok(None) };
    if header.uuid != uuid || at + header.disk_len() > len {
        return Ok(None);
    }
    let whole = GROUP_HEAD + header.body_len as usize;
    if whole > BLOCK_LEN {
        bytes.resize(whole, 0);
        file.read_exact_at(&mut bytes[BLOCK_LEN..], at + BLOCK)?;
    }
    bytes.truncate(whole);
    Ok(header.check(&bytes).then_some((header, bytes)))
}

/// The next valid group of this segment behind `at` with a number above `number`.
fn later(file: &dyn File, uuid: Uuid, at: u64, len: u64, number: u64) -> io::Result<Option<u64>> {
    const STEP: usize = 1 << 20;
    let mut buf = vec![0; STEP];
    let mut from = at;
    while from < len {
        let n = file.read_at(&mut buf, from)?;
        for (i, block) in buf[..n].chunks(BLOCK_LEN).enumerate() {
            if block.starts_with(&group::MAGIC)
                && let Some((h, _)) = group_at(file, uuid, from + i as u64 * BLOCK, len)?
                && h.number > number
            {
                return Ok(Some(from + i as u64 * BLOCK));
            }
        }
        if n < STEP {
            break;
        }
        from += STEP as u64;
    }
    Ok(None)
}

/// Whether any block behind the first one starts like a group, of whatever segment.
pub(crate) fn has_groups(file: &dyn File) -> io::Result<bool> {
    let len = file.len()?;
    let mut block = vec![0; 4];
    let mut at = BLOCK;
    while at + BLOCK <= len {
        file.read_exact_at(&mut block, at)?;
        if block == group::MAGIC {
            return Ok(true);
        }
        at += BLOCK;
    }
    Ok(false)
}

/// Reads the groups of a segment whose first group is `first`, and calls `visit` with each record and the offset of its bytes in the file.
/// The tail behind the last valid group is dropped. After a bad group that has a valid later one the scan goes on behind the gap: what is
/// there is worth keeping, but the segment is damaged.
pub(crate) fn scan(
    file: &dyn File,
    uuid: Uuid,
    first: u64,
    visit: &mut dyn FnMut(Record, u64),
) -> io::Result<ScanEnd> {
    let len = file.len()?;
    let mut end = ScanEnd { data_end: BLOCK, last_group: first - 1, groups: 0, torn: false, damaged: None };
    let mut at = BLOCK;
    loop {
        let found = group_at(file, uuid, at, len)?;
        let Some((header, bytes)) = found.filter(|(h, _)| h.number > end.last_group) else {
            match later(file, uuid, at, len, end.last_group)? {
                Some(next) => {
                    let what = format!("group {} at {at} is bad, a later one is valid", end.last_group + 1);
                    end.damaged.get_or_insert(what);
                    at = next;
                    continue;
                }
                None => break,
            }
        };
        if header.number != end.last_group + 1 {
            end.damaged.get_or_insert(format!("group {} follows {}", header.number, end.last_group));
        }
        let body = &bytes[GROUP_HEAD..];
        let mut from = 0;
        let mut records = 0;
        while from < body.len() {
            let Some((record, start, next)) = record::parse(body, from) else { break };
            visit(record, at + (GROUP_HEAD + start) as u64);
            from = next;
            records += 1;
        }
        if from != body.len() || records != header.records {
            end.damaged.get_or_insert(format!("group {} holds a record that is not known", header.number));
        }
        end.last_group = header.number;
        end.groups += 1;
        at += header.disk_len();
        end.data_end = at;
    }
    if at + BLOCK <= len {
        let mut mark = [0; 4];
        file.read_exact_at(&mut mark, at)?;
        end.torn = mark == group::MAGIC;
    }
    Ok(end)
}
