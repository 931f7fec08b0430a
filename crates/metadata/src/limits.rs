//! Ceilings of everything that a command can make grow.

/// Partitions of one topic.
pub const MAX_PARTITIONS: u32 = 100_000;
/// Partitions of all topics.
pub const MAX_PARTITIONS_IN_ALL: usize = 1_000_000;
/// Consumer groups with a configuration.
pub const MAX_GROUPS: usize = 100_000;
/// Partitions in the static assignment of a group.
pub const MAX_STATIC_ELEMENTS: usize = 10_000;
/// Topics.
pub const MAX_TOPICS: usize = 100_000;
/// Members, retired ones included.
pub const MAX_MEMBERS: usize = 100_000;
/// Live sessions.
pub const MAX_SESSIONS: usize = 10_000;
/// Fragments of one ledger. A writer rolls after 8 ensemble changes; the rest is room for recoveries.
pub const MAX_FRAGMENTS: usize = 64;
/// `under` ranges of one command; a fragment that would get more lists one range that covers them all.
pub const MAX_UNDER: usize = 1_024;
/// Ledgers of one chain.
pub const MAX_CHAIN: usize = 65_536;
/// Lanes of one bookie.
pub const MAX_LANES: usize = 64;
/// Bytes of a name, a host, a zone.
pub const MAX_NAME_LEN: usize = 253;
/// Producer ids of one command.
pub const MAX_PRODUCER_IDS: u32 = 1_000_000;
/// Largest body of a batch that a topic may allow, bytes.
pub const MAX_MESSAGE_BYTES: u32 = 64 << 20;
/// Elements of one page of a list.
pub const MAX_PAGE: u32 = 10_000;
/// Replies kept per session (R9).
pub const MAX_REPLIES: usize = 1_024;
/// Bytes of the replies kept per session (R9); the newest one always stays.
pub const MAX_REPLY_BYTES: usize = 8 << 20;
/// Bytes of the uid of a claim.
pub const MAX_CLAIM_UID_LEN: usize = 128;
/// Bytes of the owner of a claim, for people.
pub const MAX_CLAIM_OWNER_LEN: usize = 512;
/// Longest time that a deleted topic is kept: 10 years, ms.
pub const MAX_PURGE_AFTER_MS: i64 = 10 * 366 * 24 * 3_600 * 1_000;
/// Elements of a batch command.
pub use tidemill_types::meta::MAX_BATCH;
