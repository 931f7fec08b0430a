//! The Kubernetes operator of Tidemill: reconciles Cluster, Topic and ConsumerGroup.
//!
//! ```text
//! controller   watches, and runs one pass at a time per object
//!   observe    reads the API server and asks the members            I/O
//!   plan       decides: actions, conditions, status                 pure
//!   render     the children as objects                              pure
//!   apply      carries the actions out                              I/O
//! election     one operator leads
//! ```

pub mod apply;
pub mod args;
pub mod context;
pub mod controller;
mod definitions;
pub mod election;
pub mod link;
mod memory;
pub mod metrics;
pub mod names;
pub mod observe;
pub mod plan;
pub mod render;
mod run;

pub use run::run;
