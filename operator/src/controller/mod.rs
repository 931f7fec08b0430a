//! The controllers: watch, observe, plan, apply, say.

pub mod cluster;
mod errors;

pub use errors::PassError;
