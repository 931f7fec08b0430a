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

/// Bytes of one read of a search.
const STEP: usize = 1 << 20;

/// The first block at or behind `from`, a multiple of [`BLOCK`], that starts like a group, of whatever segment, and for which `test` has
/// an answer. What was never written is not read: a segment is preallocated, and holes read as zeros (`File::next_data`).
fn find<T>(
    file: &dyn File,
    from: u64,
    test: &mut dyn FnMut(u64) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let mut buf = Vec::new();
    let mut at = from;
    while let Some(data) = file.next_data(at)? {
        // A block that is data in part is looked at as a whole.
        at = at.max(data.start / BLOCK * BLOCK);
        while at < data.end {
            let want = super::block_up(data.end - at).min(STEP as u64);
            buf.resize(usize::try_from(want).unwrap_or(STEP), 0);
            let n = file.read_at(&mut buf, at)?;
            if n == 0 {
                return Ok(None);
            }
            for (i, block) in buf[..n].chunks(BLOCK_LEN).enumerate() {
                if block.starts_with(&group::MAGIC)
                    && let Some(found) = test(at + i as u64 * BLOCK)?
                {
                    return Ok(Some(found));
                }
            }
            at += super::block_up(n as u64);
        }
    }
    Ok(None)
}

/// The next valid group of this segment at or behind `at` with a number above `number`.
fn later(file: &dyn File, uuid: Uuid, at: u64, len: u64, number: u64) -> io::Result<Option<u64>> {
    find(file, at, &mut |at| {
        let found = group_at(file, uuid, at, len)?;
        Ok(found.filter(|(h, _)| h.number > number).map(|_| at))
    })
}

/// Whether any block behind the first one starts like a group, of whatever segment.
pub(crate) fn has_groups(file: &dyn File) -> io::Result<bool> {
    Ok(find(file, BLOCK, &mut |_| Ok(Some(())))?.is_some())
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
