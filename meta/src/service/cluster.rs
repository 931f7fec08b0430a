//! The cluster that this member belongs to.

use std::sync::{Arc, OnceLock};

use tidemill_proto::convert;
use tidemill_types::{ClusterId, ErrorCode};
use tonic::Status;

use super::{invalid, refuse};

/// Known from the identity file, or from the moment on at which the state has it. Never changes afterwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterCell {
    id: Arc<OnceLock<ClusterId>>,
}

impl ClusterCell {
    pub(crate) fn new(id: Option<ClusterId>) -> Self {
        let this = Self::default();
        if let Some(id) = id {
            this.set(id);
        }
        this
    }

    pub(crate) fn get(&self) -> Option<ClusterId> {
        self.id.get().copied()
    }

    /// True when it was news.
    pub(crate) fn set(&self, id: ClusterId) -> bool {
        self.id.set(id).is_ok()
    }

    /// 16 bytes, or none while unknown.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.get().map(|c| c.0.as_bytes().to_vec()).unwrap_or_default()
    }

    /// Refuses a message that names another cluster. Who names none does not know it yet.
    pub(crate) fn check(&self, named: &[u8]) -> Result<(), Status> {
        if named.is_empty() {
            return Ok(());
        }
        let named = convert::uuid("cluster", named).map(ClusterId);
        let named = named.map_err(|e| invalid("cluster", &format!("16 bytes, not {}", e.len)))?;
        match self.get() {
            Some(have) if have != named => {
                Err(refuse(ErrorCode::WrongCluster, &format!("this is cluster {have}, not {named}")))
            }
            _ => Ok(()),
        }
    }
}
