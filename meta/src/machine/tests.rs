//! Snapshot files: written, installed, damaged.

use std::{path::Path, sync::Arc};

use openraft::{RaftSnapshotBuilder, storage::RaftStateMachine};
use tidemill_runtime::io::{Disk, SimDisk};
use tidemill_types::{
    ClusterId, RequestId, SessionId,
    meta::{Command, Request},
};
use uuid::Uuid;

use super::{Machine, MachineStore, SnapshotFolder};
use crate::{
    MetaStartError,
    types::{Entry, Membership, Peer, Proposal, log_id},
};

const DIR: &str = "/m";

fn open_in(disk: &Arc<SimDisk>, dir: &str) -> Result<(MachineStore, Arc<Machine>), MetaStartError> {
    let (folder, current) = SnapshotFolder::open(disk.clone(), Path::new(dir))?;
    let machine = Machine::new();
    Ok((MachineStore::open(machine.clone(), Arc::new(folder), current, Path::new(dir))?, machine))
}

fn open(disk: &Arc<SimDisk>) -> Result<(MachineStore, Arc<Machine>), MetaStartError> {
    open_in(disk, DIR)
}

/// A store with a membership and an `Init`, and the snapshot of it.
async fn with_snapshot(disk: &Arc<SimDisk>) -> MachineStore {
    disk.create_dir(Path::new(DIR)).unwrap();
    let (mut store, machine) = open(disk).unwrap();
    let nodes = std::collections::BTreeMap::from([(7, Peer { address: "a:1".into(), member: vec![1; 16] })]);
    let members = Membership::new(vec![std::collections::BTreeSet::from([7])], nodes).unwrap();
    let command = Command::Init { cluster: ClusterId(Uuid::from_u128(5)) };
    let request = Request { session: SessionId::NONE, request: RequestId(0), command };
    let request = tidemill_metadata::encode_request(&request).unwrap().into();
    for (index, payload) in
        [openraft::EntryPayload::Membership(members), openraft::EntryPayload::Normal(Proposal(request))]
            .into_iter()
            .enumerate()
    {
        machine.apply(&Entry { log_id: log_id(3, index as u64), payload }).unwrap();
    }
    store.get_snapshot_builder().await.build_snapshot().await.unwrap();
    store
}

#[tokio::test]
async fn a_snapshot_is_found_again_and_installed_elsewhere() {
    let disk = Arc::new(SimDisk::new(1, 1 << 20));
    let mut store = with_snapshot(&disk).await;
    let built = store.get_current_snapshot().await.unwrap().unwrap();
    let (mut again, machine) = open(&disk).unwrap();
    assert_eq!(again.applied_state().await.unwrap(), store.applied_state().await.unwrap());
    assert_eq!(machine.state().cluster(), Some(ClusterId(Uuid::from_u128(5))));

    let elsewhere = Arc::new(SimDisk::new(2, 1 << 20));
    elsewhere.create_dir(Path::new("/n")).unwrap();
    let (mut other, machine) = open_in(&elsewhere, "/n").unwrap();
    other.install_snapshot(&built.meta, built.snapshot).await.unwrap();
    assert_eq!(machine.state().cluster(), Some(ClusterId(Uuid::from_u128(5))));
    let (mut other, _) = open_in(&elsewhere, "/n").unwrap();
    assert_eq!(other.applied_state().await.unwrap(), store.applied_state().await.unwrap());
}

#[tokio::test]
async fn damage_anywhere_is_refused() {
    let disk = Arc::new(SimDisk::new(1, 1 << 20));
    let mut store = with_snapshot(&disk).await;
    let file = store.get_current_snapshot().await.unwrap().unwrap().snapshot;
    for byte in 0..file.len {
        let damaged = Arc::new(disk.fork(byte));
        damaged.flip_bit(&file.path, byte * 8 + byte % 8).unwrap();
        let e = open(&damaged).err().unwrap_or_else(|| panic!("byte {byte} of {} went unnoticed", file.len));
        assert!(matches!(e, MetaStartError::Corrupt { .. }), "{e}");
    }
    let cut = Arc::new(disk.fork(1));
    cut.truncate(&file.path, file.len - 1).unwrap();
    assert!(matches!(open(&cut), Err(MetaStartError::Corrupt { .. })));
}
