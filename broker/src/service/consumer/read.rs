//! One round of reads over the partitions of a fetch.

use std::sync::Arc;

use futures::{StreamExt, stream::FuturesOrdered};

use super::{
    items::{Item, Outcome},
    share,
};
use crate::core::Core;

/// Reads at once: catch-up reads wait for bookies, and what they bring above the limit is thrown away.
const AT_ONCE: usize = 16;

/// What is left of a fetch's limit.
pub(super) struct Room {
    /// Bytes that may still go into the answer.
    pub(super) left: usize,
    /// Bytes in the answer.
    pub(super) used: usize,
    /// Something was found that did not fit: waiting for more is of no use.
    pub(super) full: bool,
}

/// Reads every partition that is waiting, beginning with number `start`. Each gets an even share of what is left; what one
/// does not use goes to those after it.
pub(super) async fn round(core: &Arc<Core>, items: &mut [Item], start: usize, room: &mut Room) {
    let n = items.len();
    let order: Vec<usize> = (0..n).map(|i| (start + i) % n).filter(|i| items[*i].is_waiting()).collect();
    let mut at = 0;
    while at < order.len() && (room.left > 0 || room.used == 0) {
        let group = &order[at..order.len().min(at + AT_ONCE)];
        let share = share::next(room.left, order.len() - at, usize::MAX);
        let mut reads = FuturesOrdered::new();
        for &i in group {
            let Outcome::Reading(r) = &items[i].outcome else { continue };
            let (log, offset, max) = (r.log.clone(), items[i].offset(), share.min(items[i].limit()).max(1));
            reads.push_back(async move { (i, log.read(offset, max).await) });
        }
        let found: Vec<_> = reads.collect().await;
        for (i, read) in found {
            let read = read.map(|mut r| {
                let all = r.batches.len();
                let kept = share::cut(&mut r, room.left, room.used == 0);
                room.left = room.left.saturating_sub(kept);
                room.used += kept;
                room.full |= r.batches.len() < all;
                r
            });
            items[i].take(core, read);
        }
        at += group.len();
    }
}
