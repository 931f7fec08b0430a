//! Bookie: the storage role.
