//! Which partitions this broker owns, and how it gets and gives them.

mod manager;
mod open;
mod plan;
mod release;
mod table;
mod upkeep;

pub(crate) use manager::{Ended, run};
pub(crate) use table::{Held, OwnedTable};
