//! `Assign`, `Acquire`, `Release`: who serves a partition, and in which epoch.

use tidemill_types::meta::{AcquireItem, Assignment, Change, Rejection, Release, Reply};
use tidemill_types::{Epoch, MemberRole, Owner, PartitionRecord, SessionId, Version};

use crate::State;
use crate::reject::{invalid, not_found};

fn bump(p: &PartitionRecord) -> PartitionRecord {
    PartitionRecord { version: Version(p.version.0 + 1), ..p.clone() }
}

impl State {
    pub(crate) fn assign(&mut self, items: &[Assignment], out: &mut Vec<Change>) -> Result<Reply, Rejection> {
        Ok(Reply::Each(items.iter().map(|item| self.assign_one(item, out)).collect()))
    }

    fn assign_one(&mut self, item: &Assignment, out: &mut Vec<Change>) -> Result<(), Rejection> {
        let p = self.find_partition(item.partition)?;
        if let Some(broker) = item.broker {
            let known = self.member(broker).ok_or_else(|| not_found("broker", broker))?;
            if known.role != MemberRole::Broker {
                return Err(invalid("broker", format_args!("{broker} is a {:?}", known.role)));
            }
        }
        if p.assigned != item.broker {
            let mut new = bump(p);
            new.assigned = item.broker;
            self.put_partition(new, out);
        }
        Ok(())
    }

    pub(crate) fn acquire(
        &mut self,
        session: SessionId,
        items: &[AcquireItem],
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        let broker = match self.sessions.get(&session) {
            Some(s) if s.role == MemberRole::Broker => s.member,
            Some(s) => return Err(invalid("session", format_args!("of a {:?}, not of a broker", s.role))),
            None => return Err(Rejection::SessionExpired),
        };
        let owner = Owner { broker, session };
        Ok(Reply::Acquired(items.iter().map(|item| self.acquire_one(owner, *item, out)).collect()))
    }

    fn acquire_one(
        &mut self,
        owner: Owner,
        item: AcquireItem,
        out: &mut Vec<Change>,
    ) -> Result<PartitionRecord, Rejection> {
        let p = self.find_partition(item.partition)?;
        if p.epoch != item.seen {
            return Err(Rejection::EpochMismatch { current: p.epoch });
        }
        if p.assigned != Some(owner.broker) {
            let why = p.assigned.map_or_else(|| "assigned to nobody".into(), |b| format!("assigned to {b}"));
            return Err(Rejection::NotAvailable { why });
        }
        // An epoch passes on only when its owner released it, or the session named in its `Acquire` ended.
        if let Some(old) = p.owner
            && self.is_live(old.session)
        {
            return Err(Rejection::NotAvailable { why: format!("held by {}", old.broker) });
        }
        let mut new = bump(p);
        new.epoch = Epoch(p.epoch.0 + 1);
        new.owner = Some(owner);
        self.put_partition(new.clone(), out);
        Ok(new)
    }

    pub(crate) fn release(
        &mut self,
        session: SessionId,
        items: &[Release],
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        Ok(Reply::Each(items.iter().map(|item| self.release_one(session, item, out)).collect()))
    }

    fn release_one(
        &mut self,
        session: SessionId,
        item: &Release,
        out: &mut Vec<Change>,
    ) -> Result<(), Rejection> {
        let mut new = bump(self.owned(item.partition, item.epoch, session)?);
        new.owner = None;
        self.put_partition(new, out);
        Ok(())
    }
}
