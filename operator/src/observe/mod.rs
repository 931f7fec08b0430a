//! What is there: children, pods and volumes as the API server tells, members and identities as they tell themselves. Plain
//! data, so that the plan is pure.

mod kubernetes;
mod quorum;
mod views;

pub use kubernetes::{KINDS, Kind, observe_kubernetes};
pub use quorum::{Peers, observe_quorum};
pub use views::{
    BookieView, ChildKey, ClaimView, Known, MemberView, MetaView, Observed, PodView, QuorumView, SetView,
    VoterView,
};
