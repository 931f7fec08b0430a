//! What to do about one partition. Pure.

use tidemill_types::{Epoch, MemberId, PartitionRecord, SessionId};

/// What this process holds of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holding {
    /// Nothing.
    Nothing,
    /// It serves it, or is about to, in this epoch.
    Serving(Epoch),
    /// It gives this epoch up: the `Release` may be on its way.
    Releasing(Epoch),
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Stay,
    /// Ask for it; this epoch was seen.
    Acquire(Epoch),
    /// The quorum says that this session owns it: an `Acquire` without an answer had committed.
    Adopt(Epoch),
    /// Hand it over in order.
    Release,
    /// Somebody else has a later epoch, or it is gone.
    Drop,
}

/// `record`: what the view says, `None` when the partition does not exist. `owner_live`: the session named in the
/// last `Acquire` is live. The view may be older than what this process knows, never newer than the truth.
pub(super) fn step(
    record: Option<&PartitionRecord>,
    owner_live: bool,
    me: (MemberId, SessionId),
    holding: Holding,
) -> Step {
    let Some(r) = record else {
        return if holding == Holding::Nothing { Step::Stay } else { Step::Drop };
    };
    let wanted = r.assigned == Some(me.0);
    match holding {
        Holding::Nothing => {
            let mine = r.owner.is_some_and(|o| (o.broker, o.session) == me);
            match (mine, owner_live && r.owner.is_some(), wanted) {
                (true, _, _) => Step::Adopt(r.epoch),
                (false, false, true) => Step::Acquire(r.epoch),
                _ => Step::Stay,
            }
        }
        Holding::Serving(e) | Holding::Releasing(e) if r.epoch > e => Step::Drop,
        Holding::Serving(e) if r.epoch == e && !wanted => Step::Release,
        // Equal and wanted, or the view is behind.
        Holding::Serving(_) | Holding::Releasing(_) => Step::Stay,
    }
}

#[cfg(test)]
mod tests {
    use tidemill_types::{Offset, Owner, PartitionId, TopicId, Version};

    use super::*;

    const EPOCH: Epoch = Epoch(4);

    fn id(n: u128) -> MemberId {
        MemberId(uuid::Uuid::from_u128(n))
    }

    fn record(owner: Option<(u128, u64)>, assigned: Option<u128>) -> PartitionRecord {
        PartitionRecord {
            id: PartitionId { topic: TopicId(1), index: 0 },
            version: Version(1),
            owner: owner.map(|(b, s)| Owner { broker: id(b), session: SessionId(s) }),
            epoch: EPOCH,
            assigned: assigned.map(id),
            chain: vec![],
            log_start: Offset(0),
        }
    }

    #[test]
    fn every_case() {
        use Holding::{Nothing, Releasing, Serving};
        let me = (id(1), SessionId(10));
        let at = |owner, live, assigned, holding| step(Some(&record(owner, assigned)), live, me, holding);
        // Free, or its owner is dead, also when that was an earlier session of this broker.
        assert_eq!(at(None, false, Some(1), Nothing), Step::Acquire(EPOCH));
        assert_eq!(at(Some((2, 9)), false, Some(1), Nothing), Step::Acquire(EPOCH));
        assert_eq!(at(Some((1, 9)), false, Some(1), Nothing), Step::Acquire(EPOCH));
        // Held by a live one, or meant for another.
        assert_eq!(at(Some((2, 9)), true, Some(1), Nothing), Step::Stay);
        assert_eq!(at(None, false, Some(2), Nothing), Step::Stay);
        assert_eq!(at(None, false, None, Nothing), Step::Stay);
        // An answer was lost; it is adopted even when it has to be released right after.
        assert_eq!(at(Some((1, 10)), true, Some(1), Nothing), Step::Adopt(EPOCH));
        assert_eq!(at(Some((1, 10)), true, Some(2), Nothing), Step::Adopt(EPOCH));
        // Served.
        assert_eq!(at(Some((1, 10)), true, Some(1), Serving(EPOCH)), Step::Stay);
        assert_eq!(at(Some((1, 10)), true, Some(2), Serving(EPOCH)), Step::Release);
        assert_eq!(at(None, true, Some(2), Serving(Epoch(5))), Step::Stay, "the view is behind the Acquire");
        assert_eq!(at(Some((2, 9)), true, Some(2), Serving(Epoch(3))), Step::Drop);
        // On its way out.
        assert_eq!(at(Some((1, 10)), true, Some(1), Releasing(EPOCH)), Step::Stay);
        assert_eq!(at(Some((2, 9)), true, Some(2), Releasing(Epoch(3))), Step::Drop);
        // Deleted.
        assert_eq!(step(None, false, me, Serving(EPOCH)), Step::Drop);
        assert_eq!(step(None, false, me, Nothing), Step::Stay);
    }
}
