//! Key compaction without I/O (broker rules 2.7): when, how far, what stays, and how it is cut into ledgers.
//!
//! The chain of a compacted partition begins with *clean* ledgers, written by earlier passes, in which of each key only the last
//! record is left. A pass reads the *dirty* ledgers behind them into a [`KeyMap`], as far as it fits, and writes everything up
//! to there anew, without the records that a later one replaces. What it wrote takes the place of what it read in one command.
//!
//! | file | decides |
//! | --- | --- |
//! | `plan` | whether a pass is due, and over which ledgers |
//! | `keys` | the last offset of each key within a byte budget |
//! | `filter` | which records of a batch stay |
//! | `packer` | entries and ledgers of the output |

pub mod filter;
pub mod keys;
pub mod packer;
pub mod plan;
#[cfg(test)]
mod tests;

pub use filter::{Bounds, Filter, Filtered};
pub use keys::{KeyMap, Put};
pub use packer::{Packed, Packer, PackerConfig};
pub use plan::{Decision, Piece, Rule, decide};
