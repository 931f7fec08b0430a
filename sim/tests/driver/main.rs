//! The ledger client's driver over bookies and metadata in this process, in paused time.

mod closing;
mod fake;
mod reading;
mod recovering;
mod writing;
