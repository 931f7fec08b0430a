//! A partition: a chain of ledgers.
