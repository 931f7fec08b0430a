//! The state as openraft asks for it.

use std::{io, path::Path, sync::Arc};

use futures::{Stream, StreamExt};
use openraft::{
    OptionalSend, RaftSnapshotBuilder,
    storage::{EntryResponder, RaftStateMachine, Snapshot},
};
use parking_lot::Mutex;

use super::{
    shared::Machine,
    snapshot::{SnapshotFile, SnapshotFolder},
};
use crate::MetaStartError;
use crate::types::{LogId, NodeId, Peer, SnapshotMeta, StoredMembership, TypeConfig};

type Current = Arc<Mutex<Option<(SnapshotMeta, SnapshotFile)>>>;
type BuiltSnapshot = openraft::alias::SnapshotOf<TypeConfig, SnapshotFile>;

/// The state machine store.
#[derive(Clone, Debug)]
pub(crate) struct MachineStore {
    machine: Arc<Machine>,
    folder: Arc<SnapshotFolder>,
    current: Current,
}

impl MachineStore {
    /// The store with the state of the current snapshot, if there is one; `dir` is the member's folder.
    pub(crate) fn open(
        machine: Arc<Machine>,
        folder: Arc<SnapshotFolder>,
        current: Option<(SnapshotMeta, SnapshotFile)>,
        dir: &Path,
    ) -> Result<Self, MetaStartError> {
        if let Some((meta, file)) = &current {
            let (state, _) = folder.install(meta, file).map_err(|e| MetaStartError::Corrupt {
                path: file.path.clone(),
                offset: 0,
                why: e.to_string(),
                dir: dir.to_path_buf(),
            })?;
            machine.replace(state, meta.last_log_id, meta.last_membership.clone());
        }
        Ok(Self { machine, folder, current: Arc::new(Mutex::new(current)) })
    }

    /// Bytes of the current snapshot.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.current.lock().as_ref().map_or(0, |(_, f)| f.len)
    }
}

fn built(meta: SnapshotMeta, snapshot: SnapshotFile) -> BuiltSnapshot {
    Snapshot::<_, NodeId, Peer, SnapshotFile> { meta, snapshot }
}

impl RaftStateMachine<TypeConfig> for MachineStore {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((self.machine.applied(), self.machine.membership()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(item) = entries.next().await {
            let (entry, responder) = item?;
            let outcome = self.machine.apply(&entry).map_err(io::Error::other)?;
            // Seen by watchers before its sender hears of it.
            self.machine.announce();
            if let Some(r) = responder {
                r.send(outcome);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let (state, applied, membership) = self.machine.cut();
        Builder { state, applied, membership, folder: self.folder.clone(), current: self.current.clone() }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        let (folder, wanted) = (self.folder.clone(), meta.clone());
        let (state, file) = tidemill_runtime::work::blocking(move || folder.install(&wanted, &snapshot))
            .await
            .map_err(io::Error::other)??;
        tracing::debug!(target: "tidemill_rare", "snapshot installed");
        *self.current.lock() = Some((meta.clone(), file));
        self.machine.replace(state, meta.last_log_id, meta.last_membership.clone());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<BuiltSnapshot>, io::Error> {
        Ok(self.current.lock().clone().map(|(meta, file)| built(meta, file)))
    }
}

/// Writes a snapshot while entries are applied on.
#[derive(Debug)]
pub(crate) struct Builder {
    state: tidemill_metadata::State,
    applied: Option<LogId>,
    membership: StoredMembership,
    folder: Arc<SnapshotFolder>,
    current: Current,
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<BuiltSnapshot, io::Error> {
        let applied = self.applied;
        let meta = SnapshotMeta { last_log_id: applied, last_membership: self.membership.clone() };
        let (folder, snapshot, membership) =
            (self.folder.clone(), self.state.snapshot(), self.membership.clone());
        let file = tidemill_runtime::work::blocking(move || folder.write(&snapshot, applied, &membership))
            .await
            .map_err(io::Error::other)??;
        let mut current = self.current.lock();
        // A newer one may have been installed meanwhile.
        if current.as_ref().is_none_or(|(m, _)| m.last_log_id < meta.last_log_id) {
            *current = Some((meta.clone(), file.clone()));
        }
        drop(current);
        Ok(built(meta, file))
    }
}
