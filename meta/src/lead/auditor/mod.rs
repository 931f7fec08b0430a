//! The auditor (R22, R23): finds copies that are missing, or that nobody has looked for, and has them made.
//!
//! What it decides follows from the replicated state and from what members say about themselves; what it remembers (times,
//! pauses after failures) may be lost with the lead at any point: every command is conditional on the record's version, and
//! a new leader finds the same work again. Copies are made by the bookies that get them; a ledger whose owner does not roll
//! it within the grace is recovered from here.

mod access;
mod compare;
mod findings;
mod look;
mod lost;
mod pass;
mod progress;
mod recover;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use self::progress::Report;
pub(super) use run::run;
