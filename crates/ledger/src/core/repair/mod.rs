//! Repair (R22, R23): which copies a ledger needs, what a look at its members tells, and how one bookie makes copies.

mod copy;
mod events;
mod job;
mod look;
mod needs;
mod span;
#[cfg(test)]
mod tests;

pub use copy::RepairCore;
pub use events::{Abort, Held, Input, Output, RepairRules};
pub use job::{Job, job};
pub use look::{LookRules, Verdict, verdict};
pub use needs::{Copies, Needs, needs};
pub use span::{count, expected, missing, span};
