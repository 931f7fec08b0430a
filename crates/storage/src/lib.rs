//! The storage engine of a bookie.
