//! Why an operation was refused.

use tidemill_types::{ErrorCode, GroupMode};

/// A refusal; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// No member, no committed offset, no configuration.
    #[error("the group does not exist")]
    UnknownGroup,
    /// The member is not in the group: never joined, left, or removed because it was not heard.
    #[error("the member is not in the group: join again with epoch 0")]
    UnknownMember,
    /// The epoch is not the member's: another process joined under its id, or the partition was assigned later than that.
    #[error("the member is fenced: {why}")]
    Fenced {
        /// Its current epoch.
        epoch: u64,
        /// Which rule.
        why: &'static str,
    },
    /// Another live process uses the member id.
    #[error("the member id is in use by another process")]
    MemberInUse,
    /// Another live member has the instance id; retry until its session is over.
    #[error("the instance id is in use by member {member:?}")]
    InstanceInUse {
        /// The other member.
        member: String,
    },
    /// The operation needs a group without members.
    #[error("the group has {members} members, and this needs an empty one")]
    NotEmpty {
        /// How many.
        members: usize,
    },
    /// Somebody else declared the group.
    #[error("it is claimed by {owner}")]
    Claimed {
        /// Who.
        owner: String,
    },
    /// A ceiling was reached.
    #[error("at most {max} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The ceiling.
        max: usize,
    },
    /// The mode of the group is not offered yet.
    #[error("groups of mode {mode:?} are not offered in this version")]
    Mode {
        /// The configured mode.
        mode: GroupMode,
    },
    /// A field outside what is allowed.
    #[error("{field}: {why}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is allowed.
        why: String,
    },
}

impl GroupError {
    /// The code that reaches a user.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownGroup => ErrorCode::UnknownGroup,
            Self::UnknownMember => ErrorCode::UnknownMember,
            Self::Fenced { .. } => ErrorCode::FencedMember,
            Self::MemberInUse => ErrorCode::MemberInUse,
            Self::InstanceInUse { .. } => ErrorCode::InstanceInUse,
            Self::NotEmpty { .. } => ErrorCode::GroupNotEmpty,
            Self::Claimed { .. } => ErrorCode::GroupClaimed,
            Self::TooMany { .. } => ErrorCode::Overloaded,
            Self::Mode { .. } => ErrorCode::Unsupported,
            Self::Invalid { .. } => ErrorCode::InvalidArgument,
        }
    }

    pub(crate) fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { field, why: why.into() }
    }
}
