//! Why a broker does not start.

use tidemill_runtime::net::BindError;
use tidemill_types::ErrorCode;

/// An error of [`crate::start`].
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
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
    /// The client of the metadata quorum cannot be made.
    #[error("cannot use the addresses of the metadata quorum: {0}")]
    Meta(String),
    /// The description of the services for reflection cannot be read.
    #[error("cannot offer reflection: {0}")]
    Reflection(String),
}

impl BrokerError {
    /// The stable code that goes with it.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Config { .. } | Self::Bind(_) | Self::Meta(_) => ErrorCode::InvalidArgument,
            Self::Reflection(_) => ErrorCode::Internal,
        }
    }
}
