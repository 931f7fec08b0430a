//! Brokers with a real quorum and real bookies, all in this process, spoken to over gRPC.

mod bad_input;
mod failover;
mod harness;
mod life;
mod round_trip;
mod stream;
