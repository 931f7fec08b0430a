//! The services that clients call.

pub(crate) mod admin;
pub(crate) mod consumer;
pub(crate) mod control;
pub(crate) mod group;
pub(crate) mod metadata;
pub(crate) mod producer;
