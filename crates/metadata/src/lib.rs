//! The pure state machine of the metadata quorum.
