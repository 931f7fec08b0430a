//! Ceilings for everything that comes from outside. Defaults stand in [`tidemill_runtime::defaults`]; these cannot be
//! configured.

use tidemill_runtime::defaults;

/// Longest broker name and zone, bytes.
pub(crate) const MAX_NAME: usize = 249;
/// Batches of one produce call: one ledger entry, with room for header and envelope.
pub(crate) const MAX_PRODUCE_BYTES: usize = defaults::MAX_ENTRY_BYTES - (64 << 10);
/// Largest value of `max.message.bytes`.
#[expect(clippy::cast_possible_truncation, reason = "8 MiB fits")]
pub(crate) const MAX_MESSAGE_CEILING: u32 = MAX_PRODUCE_BYTES as u32;
/// Largest message to the producer service: the batches, and room for the fields around them.
pub(crate) const MAX_PRODUCE_MESSAGE: usize = MAX_PRODUCE_BYTES + (256 << 10);
/// Largest message to the other services.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;
/// Batches in one produce call.
pub(crate) const MAX_BATCHES: usize = 10_000;
/// Records in one unary produce call.
pub(crate) const MAX_RECORDS: usize = 100_000;
/// Headers of one record.
pub(crate) const MAX_HEADERS: usize = 1_000;
/// Largest produce credit, bytes.
pub(crate) const MAX_CREDIT: u64 = 1 << 30;
/// Frames of one stream that may be unanswered at once: bounds memory for frames that carry few bytes.
pub(crate) const MAX_FRAMES_IN_FLIGHT: usize = 16_384;
/// Results in one answer message of a produce stream.
pub(crate) const MAX_RESULTS: usize = 4_096;
/// Partitions of one fetch.
pub(crate) const MAX_FETCH_PARTITIONS: usize = 10_000;
/// Bytes of one fetch, over all partitions.
pub(crate) const MAX_FETCH_BYTES: u32 = 64 << 20;
/// The same when the request does not say.
pub(crate) const DEFAULT_FETCH_BYTES: u32 = 8 << 20;
/// Bytes of one partition in a fetch when the request does not say.
pub(crate) const DEFAULT_PARTITION_FETCH_BYTES: u32 = 1 << 20;
/// Longest long poll, ms.
pub(crate) const MAX_FETCH_WAIT_MS: u32 = 300_000;
/// Partitions of one `ListOffsets`.
pub(crate) const MAX_LIST_OFFSETS: usize = 10_000;
/// Names in one `Describe`.
pub(crate) const MAX_DESCRIBE_TOPICS: usize = 10_000;
/// Partitions of a topic.
pub(crate) const MAX_PARTITIONS: u32 = 100_000;
/// Configuration keys of one request.
pub(crate) const MAX_CONFIG_KEYS: usize = 100;
/// Ledgers in one listing; the default is a tenth.
pub(crate) const MAX_LEDGERS: u32 = 10_000;
/// The same when the request does not say.
pub(crate) const DEFAULT_LEDGERS: u32 = 1_000;
/// Smallest `roll.bytes`.
pub(crate) const MIN_ROLL_BYTES: u64 = 1 << 20;
/// Largest `roll.bytes`.
pub(crate) const MAX_ROLL_BYTES: u64 = 64 << 30;
/// Smallest `roll.ms`.
pub(crate) const MIN_ROLL_MS: u64 = 1_000;
/// Largest time in a configuration: 100 years, ms.
pub(crate) const MAX_MS: u64 = 100 * 366 * 24 * 3_600 * 1_000;
/// HTTP/2 streams of one connection.
pub(crate) const MAX_STREAMS: u32 = 1_024;
/// Header list of one request, bytes.
pub(crate) const MAX_HEADER_LIST: u32 = 16 << 10;
