//! The metadata quorum.
