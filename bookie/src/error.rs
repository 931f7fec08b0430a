//! Why a bookie does not start.

use tidemill_runtime::net::BindError;
use tidemill_types::ErrorCode;

/// An error of [`crate::start`].
#[derive(Debug, thiserror::Error)]
pub enum BookieError {
    /// A configuration value outside what is allowed.
    #[error("configuration key {key:?}: {why}")]
    Config {
        /// The key.
        key: &'static str,
        /// What is allowed.
        why: String,
    },
    /// The address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The disks cannot be used.
    #[error("cannot open the disks: {0}")]
    Storage(String),
    /// A data directory cannot be used: it cannot be made, written or read.
    #[error("cannot use the data directory: {0}")]
    Directory(String),
    /// The descriptions of the services cannot be read: a bug.
    #[error("cannot offer reflection: {0}")]
    Reflection(String),
}

impl BookieError {
    /// The stable code that goes with it.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Config { .. } | Self::Bind(_) => ErrorCode::InvalidArgument,
            Self::Storage(_) => ErrorCode::Conflict,
            Self::Directory(_) => ErrorCode::BadDirectory,
            Self::Reflection(_) => ErrorCode::Internal,
        }
    }
}
