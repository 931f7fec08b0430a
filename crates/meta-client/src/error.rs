//! What can go wrong between a client and the quorum.

use tidemill_types::{ClusterId, ErrorCode, meta::Rejection};

/// Why the quorum gave no usable answer. None of these is a verdict about a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// The command was sent and may or may not have been applied. It has to be settled (ledger protocol 1.8), never guessed.
    #[error("the outcome of the metadata command is unknown: {why}")]
    OutcomeUnknown {
        /// What happened to the last try.
        why: String,
    },
    /// Nothing was applied, or a read got no answer: no member of the quorum answered in time.
    #[error("the metadata quorum does not answer: {why}")]
    Unavailable {
        /// What happened to the last try.
        why: String,
    },
    /// The session that the command was to be sent under is not live; this command was not applied.
    #[error("the session with the metadata quorum is not live")]
    SessionExpired,
    /// The quorum belongs to another cluster.
    #[error("the metadata quorum refuses the request: {why}")]
    WrongCluster {
        /// The cluster that this client knows.
        known: Option<ClusterId>,
        /// What the member said.
        why: String,
    },
    /// The request itself was refused (a limit, a format); a retry cannot help.
    #[error("the metadata quorum refuses the request: {why}")]
    Refused {
        /// The code that it gave.
        code: ErrorCode,
        /// What it said.
        why: String,
    },
    /// Bytes that this version cannot read.
    #[error("the answer of the metadata quorum cannot be read: {why}")]
    Malformed {
        /// What is wrong.
        why: String,
    },
}

impl MetaError {
    /// Whether the same call can succeed later. For [`Self::OutcomeUnknown`] a new call is a new command: settle first.
    #[must_use]
    pub fn retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::OutcomeUnknown { .. })
    }

    /// The code that a user sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::OutcomeUnknown { .. } => ErrorCode::OutcomeUnknown,
            Self::Unavailable { .. } => ErrorCode::QuorumUnavailable,
            Self::SessionExpired => ErrorCode::SessionExpired,
            Self::WrongCluster { .. } => ErrorCode::WrongCluster,
            Self::Refused { code, .. } => *code,
            Self::Malformed { .. } => ErrorCode::Internal,
        }
    }
}

/// Why a session could not be opened or a bookie could not boot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No answer.
    #[error(transparent)]
    Meta(#[from] MetaError),
    /// The quorum says no: another cluster, another live process of this identity, a retired uuid.
    #[error("the metadata quorum refuses this member: {0}")]
    Rejected(Rejection),
}
