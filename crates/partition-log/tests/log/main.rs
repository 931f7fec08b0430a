//! Partition logs over the real ledger client, the quorum's real state machine, and bookies in this process.

mod barrier;
mod bookies;
mod cluster;
mod fencing;
mod history;
mod produce;
mod quorum;
mod reading;
mod rolling;
mod take_over;
