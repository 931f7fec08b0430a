//! Repair of a CLOSED ledger (R20, R22, R23): the production cores of auditor and repairer between bookies that lose data,
//! collect ledgers, go through limbo and are drained, and a metadata record reduced to its rules.
//!
//! Every answer is given at one moment and every command is applied at one moment, in any order; a command whose outcome the
//! worker does not learn may be applied at any later time, or never.

mod meta;
mod scope;
mod state;
mod steps;

pub use meta::WorldRules;
pub use scope::RepairScope;
pub use state::{Act, RepairModel, World};
