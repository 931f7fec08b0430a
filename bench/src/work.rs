//! The work that every system does.

use std::time::Duration;

/// One piece.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    pub(crate) record_bytes: u64,
    pub(crate) partitions: u32,
    pub(crate) batch_bytes: u64,
    pub(crate) linger: Duration,
    pub(crate) warmup: Duration,
    pub(crate) time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As fast as acknowledgements allow.
    Throughput,
    /// So many records a second.
    Latency(u64),
    /// The same, with a reader.
    EndToEnd(u64),
    /// Reads from the start what the throughput work of the same size has written.
    CatchUp,
}

/// Bytes of undecided records that a client may hold, the same for all that can be told.
pub(crate) const MEMORY: u64 = 32 << 20;
/// Batches of a partition, or requests of a connection, in flight.
pub(crate) const IN_FLIGHT: u32 = 5;

impl Work {
    /// Its name in tables, and of its topic.
    pub(crate) fn name(&self) -> String {
        let size = match self.record_bytes {
            n if n >= 1 << 10 => format!("{} KiB", n >> 10),
            n => format!("{n} B"),
        };
        let partitions = match self.partitions {
            1 => "1 partition".to_owned(),
            n => format!("{n} partitions"),
        };
        match self.kind {
            Kind::Throughput => format!("write {size}, {partitions}"),
            Kind::CatchUp => format!("read {size}, {partitions}"),
            Kind::Latency(rate) => format!("acknowledge {rate}/s, {size}"),
            Kind::EndToEnd(rate) => format!("end to end {rate}/s, {size}"),
        }
    }

    /// Characters that every system allows.
    pub(crate) fn topic(&self) -> String {
        let kind = match self.kind {
            // The reader reads what the writer wrote.
            Kind::Throughput | Kind::CatchUp => "write".to_owned(),
            Kind::Latency(rate) => format!("ack{rate}"),
            Kind::EndToEnd(rate) => format!("e2e{rate}"),
        };
        format!("{kind}-{}-{}", self.record_bytes, self.partitions)
    }
}

/// All work of a run.
pub(crate) fn all(quick: bool, only: &[String]) -> Vec<Work> {
    let (warmup, time) = if quick { (2, 6) } else { (5, 15) };
    let (warmup, time) = (Duration::from_secs(warmup), Duration::from_secs(time));
    let write = |record_bytes, partitions| Work {
        kind: Kind::Throughput,
        record_bytes,
        partitions,
        batch_bytes: 256 << 10,
        linger: Duration::from_millis(5),
        warmup,
        time,
    };
    let paced = |kind| Work { kind, linger: Duration::ZERO, ..write(100, 8) };
    let mut all = vec![
        paced(Kind::Latency(1_000)),
        paced(Kind::EndToEnd(1_000)),
        write(100, 8),
        Work { kind: Kind::CatchUp, ..write(100, 8) },
        write(1 << 10, 8),
    ];
    if !quick {
        all.extend([write(64 << 10, 8), write(100, 1), write(100, 64), write(100, 1_000)]);
        all.push(Work { linger: Duration::from_millis(5), ..paced(Kind::Latency(100_000)) });
    }
    all.retain(|w| only.is_empty() || only.iter().any(|o| w.name().contains(o.as_str())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_topics_are_plain() {
        let all = all(false, &[]);
        let mut names: Vec<_> = all.iter().map(Work::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|w| w.topic().chars().all(|c| c.is_ascii_alphanumeric() || c == '-')));
    }

    #[test]
    fn a_reader_reads_what_a_writer_wrote() {
        for quick in [true, false] {
            let all = all(quick, &[]);
            for (i, reader) in all.iter().enumerate().filter(|(_, w)| w.kind == Kind::CatchUp) {
                assert!(all[..i].iter().any(|w| w.kind == Kind::Throughput && w.topic() == reader.topic()));
            }
        }
    }
}
