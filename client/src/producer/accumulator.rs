//! Where the records of one partition become batches.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tidemill_record::{BatchBuilder, BatchError, Compression, HEADER_BYTES, Limits, ProducerFields};
use tidemill_runtime::defaults;
use tokio::time::Instant;

use super::{SendRecord, delivery::BatchState, topic::Sticky};

/// A partition without a batch for so long takes a new producer id before its next one: the broker may have forgotten
/// the old one, and nothing of it is undecided (2.1.5).
const IDLE_IDENTITY: Duration = Duration::from_secs(defaults::PRODUCER_EXPIRY.as_secs() / 2);

/// Who the batches of a partition are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// Not idempotent.
    Anonymous,
    /// A producer id is being asked for; batches wait unsealed.
    Wanted,
    /// Batches are sealed with it.
    Known {
        /// Producer id.
        id: i64,
        /// Its epoch.
        epoch: i16,
    },
}

/// A partition as `send` sees it.
#[derive(Debug)]
pub(super) struct Partition {
    /// Place among all partitions of the producer.
    pub(super) lane: usize,
    pub(super) topic: Arc<str>,
    pub(super) index: u32,
    pub(super) sticky: Arc<Sticky>,
    pub(super) acc: Mutex<Accumulator>,
}

/// Open and closed batches.
#[derive(Debug)]
pub(super) struct Accumulator {
    builder: BatchBuilder,
    open: Option<Open>,
    pub(super) identity: Identity,
    next_sequence: i32,
    compression: Compression,
    /// Not yet taken by the driver.
    pub(super) closed: VecDeque<Closed>,
    /// The driver was told that there is something to look at.
    pub(super) announced: bool,
    last_size: usize,
    last_closed: Instant,
    /// Records taken so far.
    pub(super) taken: u64,
}

#[derive(Debug)]
struct Open {
    state: Arc<BatchState>,
    reserved: usize,
    born: Instant,
}

/// A batch that gets no more records.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) state: Arc<BatchState>,
    /// Bytes of the memory bound that it holds.
    pub(super) reserved: usize,
    /// When its first record came.
    pub(super) born: Instant,
    /// Records.
    pub(super) count: i32,
    pub(super) body: Body,
}

/// The records of a closed batch.
#[derive(Debug)]
pub(super) enum Body {
    /// Waits for a producer id.
    Raw(Box<BatchBuilder>),
    /// Final: these bytes are sent, however often (2.1.4).
    Sealed(Bytes),
    /// The codec refused it.
    Refused(BatchError),
}

/// What an append did.
pub(super) struct Appended {
    pub(super) state: Arc<BatchState>,
    pub(super) index: u32,
    /// The driver has to look.
    pub(super) announce: bool,
    /// A batch was closed, so that records without key go elsewhere.
    pub(super) closed: bool,
}

fn builder() -> BatchBuilder {
    // What a batch may have is decided by the caller's limits before the append.
    BatchBuilder::new(Limits { batch: 256 << 20, inflated: 256 << 20, ..Limits::DEFAULT })
}

impl Accumulator {
    pub(super) fn new(identity: Identity, compression: Compression) -> Self {
        Self {
            builder: builder(),
            open: None,
            identity,
            next_sequence: 0,
            compression,
            closed: VecDeque::new(),
            announced: false,
            last_size: 0,
            last_closed: Instant::now(),
            taken: 0,
        }
    }

    /// Adds a record for which `reserved` bytes were taken; batches stay within `max_bytes`.
    #[inline]
    pub(super) fn append(
        &mut self,
        partition: u32,
        record: &SendRecord<'_>,
        timestamp: i64,
        reserved: usize,
        max_bytes: usize,
    ) -> Result<Appended, BatchError> {
        let mut closed = false;
        if self.open.is_some() {
            let more = self.builder.record_size(timestamp, record.key, record.value, record.headers);
            if self.builder.size().saturating_add(more) > max_bytes {
                self.close();
                closed = true;
            }
        }
        if self.builder.is_empty() && self.last_size > 0 {
            self.builder.reserve(self.last_size);
        }
        let index = self.builder.append(timestamp, record.key, record.value, record.headers);
        let index = match index {
            Ok(i) => i.unsigned_abs(),
            Err(e) => {
                // A batch that was closed on the way is announced by the driver's linger timer at the latest.
                return Err(e);
            }
        };
        self.taken += 1;
        let opened = self.open.is_none();
        let open = self.open.get_or_insert_with(|| Open {
            state: BatchState::new(partition),
            reserved: 0,
            born: Instant::now(),
        });
        open.reserved += reserved;
        let state = open.state.clone();
        // No further record of a usual size fits: no need to wait for it.
        if self.builder.size() + HEADER_BYTES >= max_bytes {
            self.close();
            closed = true;
        }
        let announce = (opened || closed) && !std::mem::replace(&mut self.announced, true);
        Ok(Appended { state, index, announce, closed })
    }

    /// When the open batch was begun.
    pub(super) fn open_since(&self) -> Option<Instant> {
        self.open.as_ref().map(|o| o.born)
    }

    /// Closes the open batch, if there is one.
    pub(super) fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let now = Instant::now();
        let forgotten = now.duration_since(self.last_closed) > IDLE_IDENTITY;
        if forgotten && self.next_sequence != 0 && matches!(self.identity, Identity::Known { .. }) {
            self.identity = Identity::Wanted;
        }
        self.last_closed = now;
        self.last_size = self.builder.size();
        let count = self.builder.count();
        let body = if self.identity == Identity::Wanted {
            Body::Raw(Box::new(std::mem::replace(&mut self.builder, builder())))
        } else {
            let sealed = seal(&mut self.builder, self.identity, &mut self.next_sequence, self.compression);
            if matches!(sealed, Body::Refused(_)) {
                self.builder.clear();
            }
            sealed
        };
        self.closed.push_back(Closed {
            state: open.state,
            reserved: open.reserved,
            born: open.born,
            count,
            body,
        });
    }

    /// A new producer id: sequences begin at 0, and the batches that waited for it are sealed, in order.
    pub(super) fn adopt<'a>(&mut self, id: i64, epoch: i16, waiting: impl Iterator<Item = &'a mut Closed>) {
        self.identity = Identity::Known { id, epoch };
        self.next_sequence = 0;
        for batch in waiting {
            if let Body::Raw(b) = &mut batch.body {
                batch.body = seal(b, self.identity, &mut self.next_sequence, self.compression);
            }
        }
    }
}

/// Fixes the bytes and takes the sequences, which never change again.
fn seal(
    builder: &mut BatchBuilder,
    identity: Identity,
    next_sequence: &mut i32,
    compression: Compression,
) -> Body {
    let last = builder.count() - 1;
    let producer = match identity {
        Identity::Known { id, epoch } => Some(ProducerFields { id, epoch, base_sequence: *next_sequence }),
        Identity::Anonymous | Identity::Wanted => None,
    };
    match builder.finish(compression, producer) {
        Ok(bytes) => {
            if let Some(p) = producer {
                *next_sequence = p.next_sequence(last);
            }
            Body::Sealed(bytes)
        }
        Err(e) => Body::Refused(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends so many records and closes the batch; how often memory is asked for.
    fn allocations(acc: &mut Accumulator, records: u32) -> u64 {
        let counted = allocation_counter::measure(|| {
            for _ in 0..records {
                let value = [7; 100];
                let record = SendRecord::new(None, Some(&value));
                acc.append(0, &record, 1, 148, 1 << 20).unwrap();
            }
            acc.close();
        });
        acc.closed.clear();
        counted.count_total
    }

    /// The same on every machine, however busy: what keeps `send` cheap.
    #[test]
    fn a_record_costs_no_allocation() {
        let mut acc = Accumulator::new(Identity::Known { id: 1, epoch: 0 }, Compression::None);
        // Grows what is used again: a batch is given the size of the one before it.
        allocations(&mut acc, 5_000);
        allocations(&mut acc, 5_000);
        let (many, few) = (allocations(&mut acc, 5_000), allocations(&mut acc, 10));
        assert_eq!(many, few);
        assert!(many <= 6, "{many} allocations per batch");
    }
}
