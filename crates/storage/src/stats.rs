//! Counters of the engine.

/// Times in buckets: bucket `i` counts times below `2^i * 16` µs, the last one all longer ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Counts per bucket.
    pub buckets: [u64; 20],
    /// How many in all.
    pub count: u64,
    /// Sum, µs.
    pub sum_us: u64,
}

impl Histogram {
    /// Upper bound of bucket `i`, µs.
    #[must_use]
    pub fn bound_us(i: usize) -> u64 {
        16 << i
    }

    pub(crate) fn record(&mut self, us: u64) {
        let i =
            (0..self.buckets.len() - 1).find(|&i| us < Self::bound_us(i)).unwrap_or(self.buckets.len() - 1);
        self.buckets[i] += 1;
        self.count += 1;
        self.sum_us += us;
    }
}

/// A copy of the engine's counters since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes written to segments by adds, all of them: headers, padding, footers.
    pub bytes_written: u64,
    /// Bytes of entries in them.
    pub payload_bytes: u64,
    /// Bytes written by rewriting segments (apart from `bytes_written`).
    pub rewritten_bytes: u64,
    /// Groups synced, closing ones included.
    pub groups: u64,
    /// Closing groups among them.
    pub closing_groups: u64,
    /// Entries synced.
    pub entries: u64,
    /// Bytes that wait in the queues now.
    pub queue_bytes: u64,
    /// Duration of the syncs of groups.
    pub sync: Histogram,
    /// Adds refused: fenced.
    pub refused_fenced: u64,
    /// Adds refused: queue full.
    pub refused_overloaded: u64,
    /// Adds refused: no room.
    pub refused_read_only: u64,
    /// Adds that had to ask the quorum first.
    pub first_touches: u64,
    /// Alarm: an add for a present entry with other bytes (R24).
    pub conflicts: u64,
    /// Present copies that failed their check and were replaced (R24).
    pub replaced: u64,
    /// Reads that met damaged bytes.
    pub corrupt_reads: u64,
    /// Fences that waited for an accepted add (R25).
    pub fences_waited: u64,
    /// Fences that created the ledger.
    pub fences_of_unknown: u64,
    /// Failed writes: a segment was given up.
    pub failed_writes: u64,
    /// Ledgers collected.
    pub collected: u64,
    /// Segments sealed.
    pub sealed_segments: u64,
    /// Segments removed.
    pub removed_segments: u64,
    /// Bytes read by scrubbing.
    pub scrubbed_bytes: u64,
    /// Segments read by scrubbing.
    pub scrubbed_segments: u64,
    /// Alarm: segments whose header, footer or index was found damaged.
    pub scrub_damaged_segments: u64,
    /// Segments that could not be read by scrubbing.
    pub scrub_failed_reads: u64,
    /// Alarm: stored entries that are known to be damaged now.
    pub damaged_entries: u64,
}
