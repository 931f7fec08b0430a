//! Client of the metadata quorum.
