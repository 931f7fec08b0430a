//! The live counters behind [`Stats`].

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::stats::{Histogram, Stats};

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
            pub(crate) sync: Mutex<Histogram>,
        }

        impl Counters {
            pub(crate) fn snapshot(&self, queue_bytes: u64, damaged_entries: u64) -> Stats {
                Stats {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    queue_bytes,
                    damaged_entries,
                    sync: *self.sync.lock(),
                }
            }
        }
    };
}

counters! {
    bytes_written, payload_bytes, rewritten_bytes, groups, closing_groups, entries, refused_fenced, refused_overloaded,
    refused_read_only, first_touches, conflicts, replaced, corrupt_reads, fences_waited, fences_of_unknown, failed_writes, collected,
    sealed_segments, removed_segments, scrubbed_bytes, scrubbed_segments, scrub_damaged_segments, scrub_failed_reads,
}

pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
