//! Ids, quorum arithmetic, records of the metadata, entry format, error codes.
