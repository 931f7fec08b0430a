//! Every default number of the product, once, with its unit. Configuration starts from these.

use std::time::Duration;

/// Session of a broker or bookie with the quorum: sets how long failover takes; safety does not rest on it.
pub const SESSION_TTL: Duration = Duration::from_millis(3_000);
/// Four tries within a TTL.
pub const SESSION_RENEWAL: Duration = Duration::from_millis(750);
/// TTL less 20 %, counted from the sending of the last answered renewal.
pub const SESSION_VALIDITY: Duration = Duration::from_millis(2_400);
/// Raft heartbeat.
pub const RAFT_HEARTBEAT: Duration = Duration::from_millis(150);
/// Raft election time-out, lower bound.
pub const RAFT_ELECTION_MIN: Duration = Duration::from_millis(500);
/// Raft election time-out, upper bound.
pub const RAFT_ELECTION_MAX: Duration = Duration::from_millis(1_000);
/// Quorum time tick.
pub const QUORUM_TICK: Duration = Duration::from_secs(10);
/// Purge and retention by time need two ticks past the deadline, so far apart: a person can stop a wrong clock.
pub const PURGE_WAIT: Duration = Duration::from_secs(600);
/// How far a broker's append time may lie ahead of quorum time.
pub const APPEND_TIME_AHEAD: Duration = Duration::from_secs(60);
/// Log entries between snapshots of the quorum.
pub const SNAPSHOT_EVERY: u64 = 20_000;
/// Piece of a streamed snapshot, bytes.
pub const SNAPSHOT_PIECE: usize = 1 << 20;
/// Request ids kept per session.
pub const REQUESTS_KEPT: usize = 1_024;

/// Add time-out: then the same bytes again; not a verdict on the bookie.
pub const ADD_TIMEOUT: Duration = Duration::from_secs(2);
/// A bookie away for longer is replaced.
pub const ENSEMBLE_CHANGE_DELAY: Duration = Duration::from_secs(5);
/// The same after an announced restart.
pub const ENSEMBLE_CHANGE_DELAY_RESTART: Duration = Duration::from_secs(60);
/// Unacknowledged bytes per (broker, bookie).
pub const UNACKED_BYTES_PER_BOOKIE: u64 = 64 << 20;
/// Ensemble changes of one ledger, then roll.
pub const ENSEMBLE_CHANGES_PER_LEDGER: u32 = 8;
/// Roll at this size.
pub const ROLL_BYTES: u64 = 1 << 30;
/// Roll a ledger that is not empty at this age.
pub const ROLL_AGE: Duration = Duration::from_secs(24 * 3600);
/// Close an idle ledger after.
pub const IDLE_CLOSE: Duration = Duration::from_secs(600);
/// Explicit LAC of an idle ledger after.
pub const EXPLICIT_LAC_DELAY: Duration = Duration::from_millis(200);
/// Floor of the speculative second read's delay.
pub const SPECULATIVE_READ_FLOOR: Duration = Duration::from_millis(10);

/// The auditor asks an owner to roll, and recovers its ledger itself after.
pub const REPAIR_GRACE: Duration = Duration::from_secs(60);
/// A bookie without a session for so long is lost, when it is the only one, or all of them are of one zone.
pub const LOST_AFTER: Duration = Duration::from_secs(3600);
/// All replicas of a closed ledger are compared so often: finds silent divergence.
pub const COMPARE_EVERY: Duration = Duration::from_secs(7 * 24 * 3600);
/// Repairs that the auditor gives a bookie at once.
pub const REPAIRS_PER_BOOKIE: usize = 16;
/// Bytes a second that repairs write to a bookie.
pub const REPAIR_BYTES_PER_SECOND: u64 = 32 << 20;

/// Size of a segment file, bytes.
pub const SEGMENT_BYTES: u64 = 256 << 20;
/// A commit group closes at this size, bytes.
pub const GROUP_BYTES: usize = 1 << 20;
/// An idle lane proves its last group within.
pub const IDLE_GROUP: Duration = Duration::from_millis(100);
/// Largest entry, bytes.
pub const MAX_ENTRY_BYTES: usize = 8 << 20;
/// Add queue per lane, bytes.
pub const ADD_QUEUE_BYTES: usize = 64 << 20;
/// Read answers in flight per connection, bytes.
pub const READ_IN_FLIGHT_BYTES: usize = 32 << 20;
/// Control queue, requests.
pub const CONTROL_QUEUE: usize = 4_096;
/// Time between the starts of two scrubs of everything at rest.
pub const SCRUB_INTERVAL: Duration = Duration::from_hours(7 * 24);
/// Most bytes a second that scrubbing reads.
pub const SCRUB_BYTES_PER_SECOND: u64 = 16 << 20;
/// Newest entries that a bookie keeps in memory per lane, bytes: readers of the tail are served by brokers.
pub const RECENT_BYTES: usize = 16 << 20;
/// Kept per lane for fences, collections and recovery adds on a full disk, bytes; at most a segment.
pub const DISK_RESERVE_BYTES: u64 = 32 << 20;
/// Read-only above this share of the disk, per cent.
pub const DISK_READ_ONLY_PERCENT: u8 = 95;
/// Read-write again below, per cent.
pub const DISK_READ_WRITE_PERCENT: u8 = 90;
/// Recovery adds stop above, per cent.
pub const DISK_RECOVERY_STOP_PERCENT: u8 = 98;
/// Rewrite a segment below this share of live bytes, per cent.
pub const REWRITE_LIVE_PERCENT: u8 = 50;
/// Cache of sealed index blocks, bytes.
pub const SEALED_INDEX_CACHE: usize = 64 << 20;
/// Garbage collection pass.
pub const GC_PASS: Duration = Duration::from_secs(600);

/// HTTP/2 window of a stream, bytes.
pub const STREAM_WINDOW: u32 = 16 << 20;
/// HTTP/2 window of a connection, bytes.
pub const CONNECTION_WINDOW: u32 = 32 << 20;
/// HTTP/2 frame, bytes. The protocol's ceiling is 2^24 - 1.
pub const FRAME_BYTES: u32 = 1 << 20;
/// Keep-alive interval and time-out: a black-holed link is seen before the ensemble changes.
pub const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// gRPC port of `tidemill up`.
pub const PORT_GRPC: u16 = 7450;
/// HTTP port of `tidemill up`.
pub const PORT_HTTP: u16 = 7451;

/// Memory budget of a broker, bytes: in-flight 25 %, tail cache 50 %, catch-up 25 %.
pub const BROKER_MEMORY: u64 = 1 << 30;
/// Wait at the in-flight bound, then RESOURCE_EXHAUSTED.
pub const PRODUCE_WAIT: Duration = Duration::from_secs(5);
/// Produce credit per stream, bytes.
pub const STREAM_CREDIT: u64 = 8 << 20;
/// Produce credit per partition on a stream, bytes.
pub const PARTITION_CREDIT: u64 = 2 << 20;
/// Largest batch, bytes.
pub const MAX_MESSAGE_BYTES: u32 = 1 << 20;
/// Inflated size of an opened batch, bytes.
pub const MAX_INFLATED_BYTES: usize = 64 << 20;
/// A `state` entry after so many bytes of a ledger.
pub const STATE_ENTRY_EVERY: u64 = 16 << 20;
/// Batches remembered per producer.
pub const PRODUCER_BATCHES: usize = 5;
/// Producer state expires after this much append time without a batch.
pub const PRODUCER_EXPIRY: Duration = Duration::from_secs(24 * 3600);
/// A member of a consumer group that is not heard for so long is removed.
pub const GROUP_SESSION: Duration = Duration::from_secs(45);
/// Members are asked to be heard so often.
pub const GROUP_HEARTBEAT: Duration = Duration::from_secs(3);
/// A member that does not confirm a revocation for so long is removed.
pub const GROUP_REBALANCE: Duration = Duration::from_secs(60);
/// Committed offsets of an empty group are forgotten after.
pub const OFFSETS_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Partitions of each internal topic, fixed when it is made.
pub const INTERNAL_PARTITIONS: u32 = 64;
/// Producer client: linger.
pub const LINGER: Duration = Duration::from_millis(5);
/// Producer client: batch, bytes.
pub const BATCH_BYTES: usize = 256 << 10;
/// Producer client: delivery time-out.
pub const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// Retention by time.
pub const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Partitions of groups with a series of their own in the metric of the lag, per broker: a scrape stays below a few hundred KiB.
pub const GROUP_LAG_SERIES: u32 = 2_000;
/// Compaction begins when so many thousandths of the closed ledgers were not compacted yet: Kafka's half.
pub const MIN_DIRTY_PERMILLE: u16 = 500;
/// Tombstones live so long after they were first compacted: Kafka's.
pub const DELETE_HORIZON: Duration = Duration::from_secs(24 * 3600);
/// Largest ledger that compaction writes, bytes: small swaps.
pub const COMPACTED_LEDGER_BYTES: u64 = 1 << 30;
/// Keys that a compaction knows at once, bytes of its table; more are taken in several passes.
pub const COMPACTION_KEYS_BYTES: u64 = 32 << 20;
/// Bytes a second that the compactions of a broker read and write.
pub const COMPACTION_BYTES_PER_SECOND: u64 = 64 << 20;
/// Two ticks of quorum time confirm a time when they are so far apart: a person can stop a wrong clock.
pub const TIME_SETTLE: Duration = Duration::from_secs(600);
