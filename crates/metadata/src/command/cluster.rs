//! `Init`, `Tick`, `AllocateProducerIds`: the single values.

use tidemill_types::ClusterId;
use tidemill_types::meta::{Change, Rejection, Reply};

use crate::State;
use crate::limits::MAX_PRODUCER_IDS;
use crate::reject::{conflict, invalid};

impl State {
    pub(crate) fn init(&mut self, named: ClusterId) -> Result<Reply, Rejection> {
        match self.counters.cluster {
            Some(have) if have != named => Err(Rejection::WrongCluster { have, named }),
            Some(_) => Ok(Reply::Done),
            None => {
                self.counters.cluster = Some(named);
                Ok(Reply::Done)
            }
        }
    }

    /// Quorum time never decreases: a lower tick moves nothing, though it can still be a jump.
    pub(crate) fn tick(
        &mut self,
        wall_ms: i64,
        jump: bool,
        out: &mut Vec<Change>,
    ) -> Result<Reply, Rejection> {
        if wall_ms < 0 {
            return Err(invalid("wall_ms", "not before 1970"));
        }
        if wall_ms > self.counters.wall_ms {
            self.counters.wall_ms = wall_ms;
            out.push(Change::Time(wall_ms));
        }
        if jump {
            self.counters.jumped_ms = self.counters.wall_ms;
        }
        Ok(Reply::Done)
    }

    pub(crate) fn allocate_producer_ids(&mut self, count: u32) -> Result<Reply, Rejection> {
        if !(1..=MAX_PRODUCER_IDS).contains(&count) {
            return Err(invalid("count", format_args!("1 to {MAX_PRODUCER_IDS}")));
        }
        let first = self.counters.next_producer;
        let next = first.checked_add(i64::from(count)).ok_or_else(|| conflict("producer ids are used up"))?;
        self.counters.next_producer = next;
        Ok(Reply::ProducerIds { first, count })
    }
}
