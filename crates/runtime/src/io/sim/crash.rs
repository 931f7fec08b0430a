//! What a crash loses.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    State,
    image::{Inode, SECTOR},
};

/// How much of what is not synced survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPlan {
    /// Nothing.
    LoseAll,
    /// Everything: a process that was killed, not a machine that lost power.
    KeepAll,
    /// Each sector, length and folder change for itself, by chance.
    Random,
    /// As `Random`, and some sectors end half new, half old.
    Torn,
}

impl State {
    fn keeps(&mut self, plan: CrashPlan) -> bool {
        match plan {
            CrashPlan::LoseAll => false,
            CrashPlan::KeepAll => true,
            CrashPlan::Random | CrashPlan::Torn => self.random() & 1 == 0,
        }
    }
}

pub(super) fn crash(s: &mut State, plan: CrashPlan) {
    for change in std::mem::take(&mut s.changes) {
        if s.keeps(plan) {
            s.make_durable(change);
        }
    }
    s.names = s.durable_names.clone();
    let linked: BTreeSet<usize> = s.names.values().copied().collect();
    let mut inodes = std::mem::take(&mut s.inodes);
    inodes.retain(|id, _| linked.contains(id));
    for inode in inodes.values_mut() {
        settle(s, inode, plan);
    }
    s.inodes = inodes;
    s.locks.clear();
    s.faults = super::Faults { count: s.faults.count, ..Default::default() };
    s.boot += 1;
}

fn settle(s: &mut State, inode: &mut Inode, plan: CrashPlan) {
    let len = if s.keeps(plan) { inode.current.len } else { inode.durable.len };
    for sector in std::mem::take(&mut inode.dirty) {
        if !s.keeps(plan) {
            continue;
        }
        let Some(new) = inode.current.sectors.get(&sector) else {
            inode.durable.sectors.remove(&sector);
            continue;
        };
        if plan == CrashPlan::Torn && s.random().is_multiple_of(4) {
            let cut = usize::try_from(s.random() % SECTOR as u64).unwrap_or(0);
            let old = inode.durable.sectors.entry(sector).or_insert_with(|| Arc::new([0; SECTOR]));
            Arc::make_mut(old)[..cut].copy_from_slice(&new[..cut]);
        } else {
            inode.durable.sectors.insert(sector, Arc::clone(new));
        }
    }
    // A length that was not synced cuts off, or adds zeros; what lies behind it is never read.
    let longest = inode.durable.len.max(len);
    inode.durable.len = longest;
    inode.durable.set_len(len);
    inode.current = inode.durable.clone();
}
