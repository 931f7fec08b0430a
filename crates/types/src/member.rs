//! Members of a cluster: meta voters, bookies, brokers.

use serde::{Deserialize, Serialize};

use crate::{Incarnation, MemberId, SessionId};

/// What a member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemberRole {
    /// A voter or learner of the quorum.
    Meta,
    /// Stores ledgers.
    Bookie,
    /// Serves partitions.
    Broker,
}

/// State of a bookie's uuid (metadata, Members). Brokers are always `Rw` or `Draining`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BookieState {
    /// May be named in new fragments and repairs, answers everything.
    Rw,
    /// Not newly named; answers reads and recovery adds.
    Ro,
    /// Lost a part of its data: what is missing is unknown (R15).
    Limbo,
    /// Being emptied by wish.
    Draining,
    /// Declared gone.
    Lost,
    /// One-way: no fragment and no repair names it.
    Retired,
}

/// Where a member listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// Host name or IP.
    pub host: String,
    /// gRPC port.
    pub port: u16,
}

/// Last synced commit group of a lane, as reported with a session renewal (R16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LanePosition {
    /// The lane's uuid.
    pub lane: MemberId,
    /// Sequence number of the segment in the lane.
    pub segment: u64,
    /// Number of the last synced commit group; goes on across segments.
    pub group: u64,
}

/// A member as the quorum knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Identity.
    pub id: MemberId,
    /// Role.
    pub role: MemberRole,
    /// Name for people, such as `bookie-0`; not an identity.
    pub name: String,
    /// Incarnation of the live or last process.
    pub incarnation: Incarnation,
    /// Incarnation announced by a boot that has not finished (bookies, R16).
    pub pending_incarnation: Option<Incarnation>,
    /// Where clients and peers reach it.
    pub endpoint: Endpoint,
    /// Failure zone; empty when unknown.
    pub zone: String,
    /// State of a bookie's uuid; `Rw` for others, `Draining` for a broker that is being emptied.
    pub state: BookieState,
    /// How often the uuid booted into limbo (R8, R23).
    pub limbo_count: u32,
    /// The live session, if any.
    pub session: Option<SessionId>,
    /// Lanes of a bookie with their last replicated synced positions.
    pub lanes: Vec<LanePosition>,
    /// Free bytes of a bookie as last reported (coarse; a hint for placement).
    pub free_bytes: u64,
    /// Restart announced: writers wait 60 s instead of 5 s before they change the ensemble (R28).
    pub restarting: bool,
}

impl Member {
    /// Whether a new fragment or repair may name this bookie.
    #[must_use]
    pub fn is_writable_bookie(&self) -> bool {
        self.role == MemberRole::Bookie && self.state == BookieState::Rw
    }
}
