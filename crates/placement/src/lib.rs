//! The one planner: which broker owns which partition, which bookies hold a ledger.
//!
//! Pure functions of what they are given; two callers that see the same plan the same. The quorum's leader runs
//! [`plan`], whoever creates or changes a ledger runs [`choose_ensemble`] and [`choose_replacement`].

mod ensemble;
mod partitions;

pub use ensemble::{Shortage, choose_ensemble, choose_replacement};
pub use partitions::{BrokerView, PartitionView, plan};
