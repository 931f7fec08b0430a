//! The replicated-ledger protocol (ledger protocol 1.3-1.6, 1.9): the production cores of writer and recoverer between
//! bookies and a metadata record that are reduced to their rules.
//!
//! Messages are unordered and may be delayed for ever; time-outs may be spurious; bookies may crash and lose what they
//! have not synced. A message whose only effect would be to hold somebody back may be dropped from a state, because
//! "delayed for ever" is always among the futures.

mod actions;
pub mod bookie;
mod deliver;
pub mod ledger;
pub mod meta;
pub mod net;
mod recoverer;
pub mod scope;
mod steps;
mod writer;

pub use ledger::{Action, Ledger, State};
pub use scope::Scope;
