//! Everything once more, so that the log can be cut in front of it.

use std::collections::BTreeMap;

use tidemill_types::GroupName;

use super::{Key, Record};
use crate::Group;

/// Records in order of key, behind `after`; with the last key when there are more.
///
/// The parts may be taken one after the other while operations go on in between: a key that changed before its part was
/// taken is in it as it is, one that changes later is written again behind it.
pub(crate) fn part(
    groups: &BTreeMap<GroupName, Group>,
    after: Option<&Key>,
    max_bytes: usize,
) -> (Vec<Record>, Option<Key>) {
    let mut out = Vec::new();
    let mut bytes = 0;
    let from = after.map_or_else(|| groups.range::<GroupName, _>(..), |k| groups.range(k.group().clone()..));
    for (name, g) in from {
        let behind = |k: &Key| after.is_none_or(|a| a.group() != name || rank(a) < rank(k));
        let group = std::iter::once(Record::group(name, &g.state));
        let members = g.state.members.iter().map(|(id, m)| Record::member(name, id, Some(m)));
        let offsets = g.state.offsets.iter().map(|(p, c)| Record::offset(name, *p, Some(c)));
        let declared = std::iter::once(Record::declared(name, &g.state.declared));
        for r in group.chain(members).chain(offsets).chain(declared) {
            // An empty declaration is no record: what made it empty was written when it was.
            if !behind(&r.key) || r.value.is_none() {
                continue;
            }
            bytes += r.size();
            let key = r.key.clone();
            out.push(r);
            if bytes >= max_bytes {
                return (out, Some(key));
            }
        }
    }
    (out, None)
}

/// The order of the parts within a group.
fn rank(k: &Key) -> (u8, &str, Option<tidemill_types::PartitionId>) {
    match k {
        Key::Group(_) => (0, "", None),
        Key::Member(_, id) => (1, id, None),
        Key::Offset(_, p) => (2, "", Some(*p)),
        Key::Declared(_) => (3, "", None),
    }
}
