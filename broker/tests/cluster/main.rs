//! Brokers with a real quorum and real bookies, all in this process, spoken to over gRPC.

mod bad_input;
mod failover;
mod harness;
mod life;
mod raw;
mod round_trip;
mod stream;
