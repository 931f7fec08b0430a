//! The replicated state: applied from the log, read by the service, written out as snapshots.

mod ring;
mod shared;
mod snapshot;
mod store;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    ring::Resume,
    shared::Machine,
    snapshot::{MAX_SNAPSHOT, SnapshotFile, SnapshotFolder},
    store::MachineStore,
};
