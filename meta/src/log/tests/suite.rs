//! openraft's own suite, on the real file system.

use std::sync::Arc;

use openraft::{
    StorageError,
    testing::log::{StoreBuilder, Suite},
};
use tempfile::TempDir;
use tidemill_runtime::io::RealDisk;

use crate::{
    log::LogStore,
    machine::{Machine, MachineStore, SnapshotFolder},
    types::TypeConfig,
};

struct Builder;

impl StoreBuilder<TypeConfig, LogStore, MachineStore, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, MachineStore), StorageError<TypeConfig>> {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(RealDisk);
        let (log, _) = LogStore::open(disk.clone(), dir.path().into(), 1, (), Box::new(|_| {})).unwrap();
        let (folder, current) = SnapshotFolder::open(disk, dir.path()).unwrap();
        let store = MachineStore::open(Machine::new(), Arc::new(folder), current, dir.path()).unwrap();
        Ok((dir, log, store))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_of_openraft() {
    Suite::test_all(Builder).await.unwrap();
}
