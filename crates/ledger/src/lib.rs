//! Replicated-ledger client: writer, reader, recovery.
