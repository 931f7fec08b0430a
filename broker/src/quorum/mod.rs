//! What ledgers and partition logs need of the metadata quorum, over the quorum's client.

mod access;
mod batch;
mod session;

pub(crate) use access::QuorumAccess;
pub(crate) use session::CurrentSession;

use tidemill_ledger::MetaError as Unanswered;
use tidemill_meta_client::MetaError;

/// Of a command: `Unavailable` only where it is known that nothing was applied.
fn of_command(e: MetaError) -> Unanswered {
    match e {
        // An answer that cannot be read is an answer to a command that was applied or not.
        MetaError::OutcomeUnknown { .. } | MetaError::Malformed { .. } => Unanswered::OutcomeUnknown,
        MetaError::SessionExpired => Unanswered::SessionExpired,
        e => Unanswered::Unavailable(e.to_string()),
    }
}

/// Of a read: nothing was learned.
fn of_read(e: MetaError) -> Unanswered {
    match e {
        MetaError::SessionExpired => Unanswered::SessionExpired,
        e => Unanswered::Unavailable(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unavailable_means_not_applied() {
        let unknown = MetaError::OutcomeUnknown { why: "x".into() };
        assert_eq!(of_command(unknown), Unanswered::OutcomeUnknown);
        assert_eq!(of_command(MetaError::Malformed { why: "x".into() }), Unanswered::OutcomeUnknown);
        assert!(matches!(of_command(MetaError::Unavailable { why: "x".into() }), Unanswered::Unavailable(_)));
        assert_eq!(of_command(MetaError::SessionExpired), Unanswered::SessionExpired);
        assert!(matches!(of_read(MetaError::Malformed { why: "x".into() }), Unanswered::Unavailable(_)));
    }
}
