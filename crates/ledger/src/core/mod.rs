//! The protocol as pure state machines: no runtime, no clock, no randomness, no I/O.
//!
//! The driver feeds them in production, the model checker of `tidemill-sim` explores them.

pub mod answer;
pub mod explicit_lac;
pub mod health;
pub mod lac;
pub mod ranges;
pub mod read;
pub mod recovery;
pub mod repair;
pub mod rules;
pub mod writer;

pub use answer::{AddAnswer, FenceAnswer, MetaOutcome, Negative, ReadAnswer, Unknown};
pub use rules::{AttemptCheck, Rules};
