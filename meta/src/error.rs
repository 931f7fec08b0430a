//! Why a member of the quorum does not start, or stops.

use std::{io, path::PathBuf};

use tidemill_runtime::net::BindError;
use tidemill_types::{ClusterId, ErrorCode};

/// A failure of this member.
#[derive(Debug, thiserror::Error)]
pub enum MetaStartError {
    /// A configuration value outside of what is allowed.
    #[error("configuration key {key:?}: {why}")]
    Config {
        /// The key.
        key: &'static str,
        /// What is allowed.
        why: String,
    },
    /// Another process works in the folder.
    #[error("{dir} is in use by another process: end it, or choose another data-dir")]
    Locked {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder cannot be used.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was done, such as "reading".
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Bytes on disk failed their check where no crash can have left them so.
    #[error(
        "{path} is damaged at byte {offset}: {why}; this member cannot vote with it any more: move {dir} away, start it \
         empty and add it to the quorum again"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong.
        why: String,
        /// The member's folder.
        dir: PathBuf,
    },
    /// Identity and state belong to different clusters.
    #[error(
        "the identity file names cluster {identity}, the state is of cluster {state}: the folder was mixed up"
    )]
    MixedUp {
        /// In the identity file.
        identity: ClusterId,
        /// In the state.
        state: ClusterId,
    },
    /// The port.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The descriptions of the services cannot be read: a bug.
    #[error("cannot offer reflection: {0}")]
    Reflection(String),
    /// The consensus library stopped.
    #[error("raft: {0}")]
    Raft(String),
}

impl MetaStartError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { what, path: path.into(), source }
    }

    /// The code that a user sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Config { .. } => ErrorCode::InvalidArgument,
            Self::Locked { .. } | Self::MixedUp { .. } | Self::Bind(_) => ErrorCode::Conflict,
            Self::Io { .. } => ErrorCode::BadDirectory,
            Self::Raft(_) | Self::Reflection(_) => ErrorCode::Internal,
            Self::Corrupt { .. } => ErrorCode::Corrupt,
        }
    }
}
