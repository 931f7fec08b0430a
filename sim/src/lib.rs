//! Models of the protocol's cores, explored exhaustively in small scopes (testing level L0).
//!
//! The cores are the ones of production; the world around them (network, bookies, metadata) is reduced to what the
//! protocol assumes of it.

pub mod explore;
pub mod gc;
pub mod group;
pub mod hash;
pub mod model;
pub mod repair;
