//! What a caller of the client gets when something fails.

use std::{fmt, time::Duration};

use tidemill_proto::{convert::code_of, v1};
use tidemill_types::ErrorCode;
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// A failed operation. Displayed as `<what failed>: <why> (<code>)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// The stable code; `None` when no server answered with one (a transport failure).
    pub code: Option<ErrorCode>,
    /// Whether the same operation can succeed later.
    pub retryable: bool,
    /// What failed and why, for people.
    pub message: String,
    /// The server asked to wait at least so long.
    pub retry_after: Option<Duration>,
    /// Who owns the partition, when the answer said it.
    pub owner: Option<OwnerHint>,
}

/// Owner and epoch of a partition, as an error named them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerHint {
    /// `host:port`.
    pub address: String,
    /// The owner's epoch; 0 = not told.
    pub epoch: u64,
}

impl ClientError {
    /// An error of the client itself.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            retryable: code.retryable(),
            message: message.into(),
            retry_after: None,
            owner: None,
        }
    }

    /// The deadline passed; `last` is why no earlier try succeeded.
    pub(crate) fn deadline(what: &str, last: Option<&Self>) -> Self {
        let why = last.map_or_else(String::new, |e| format!("; last answer: {}", e.apart(what)));
        Self::new(ErrorCode::DeadlineExceeded, format!("{what}: no success within the deadline{why}"))
    }

    /// For the inside of a message that names `what` and ends with [`ErrorCode::DeadlineExceeded`]: neither stands there
    /// twice.
    fn apart(&self, what: &str) -> String {
        let why = self.message.strip_prefix(what).and_then(|m| m.strip_prefix(": ")).unwrap_or(&self.message);
        match self.code {
            Some(code) if code != ErrorCode::DeadlineExceeded => format!("{why} ({code})"),
            _ => why.to_owned(),
        }
    }

    /// From a gRPC status.
    pub(crate) fn from_status(what: &str, status: &Status) -> Self {
        let message = said(what, status.message());
        let retry_after = status.get_details_retry_info().and_then(|r| r.retry_delay);
        if let Some((code, metadata)) = code_of(status) {
            let owner = metadata.get("owner").filter(|o| !o.is_empty()).map(|o| OwnerHint {
                address: o.clone(),
                epoch: metadata.get("epoch").and_then(|e| e.parse().ok()).unwrap_or(0),
            });
            return Self { code: Some(code), retryable: code.retryable(), message, retry_after, owner };
        }
        // Statuses without our details come from the transport or from a server that is not ours.
        let (code, retryable) = match status.code() {
            Code::Unavailable | Code::Cancelled | Code::Unknown | Code::Aborted => (None, true),
            Code::ResourceExhausted => (Some(ErrorCode::Overloaded), true),
            Code::DeadlineExceeded => (Some(ErrorCode::DeadlineExceeded), true),
            Code::Unimplemented => (Some(ErrorCode::Unsupported), false),
            Code::InvalidArgument => (Some(ErrorCode::InvalidArgument), false),
            Code::Internal => (None, is_transport(status)),
            _ => (None, false),
        };
        Self { code, retryable, message, retry_after, owner: None }
    }

    /// From the error of one item of an answer.
    pub(crate) fn from_item(what: &str, e: &v1::Error) -> Self {
        let code = ErrorCode::from_wire(&e.code);
        let owner = (!e.owner.is_empty()).then(|| OwnerHint { address: e.owner.clone(), epoch: e.epoch });
        Self {
            code,
            // A code that this version does not know: the server says whether to retry.
            retryable: e.retryable || code.is_some_and(ErrorCode::retryable),
            message: said(what, &e.message),
            retry_after: (e.retry_after_ms > 0).then(|| Duration::from_millis(u64::from(e.retry_after_ms))),
            owner,
        }
    }

    /// Whether the operation may have taken effect although it failed.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        matches!(self.code, None | Some(ErrorCode::OutcomeUnknown | ErrorCode::DeadlineExceeded))
    }
}

/// `what: why`, also when the server's words begin with what was tried.
fn said(what: &str, message: &str) -> String {
    let named = message.strip_prefix(what).is_some_and(|rest| rest.starts_with(": "));
    if named { message.to_owned() } else { format!("{what}: {message}") }
}

/// A broken HTTP/2 stream shows as `INTERNAL` with the transport's error as its source.
fn is_transport(status: &Status) -> bool {
    std::error::Error::source(status).is_some() || status.message().contains("h2 protocol error")
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.code {
            Some(c) => write!(f, " ({c})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ClientError {}

#[cfg(test)]
mod tests {
    use tidemill_proto::convert::{Details, status};

    use super::*;

    #[test]
    fn owner_and_delay_survive_a_status() {
        let metadata = vec![("owner".into(), "h:1".into()), ("epoch".into(), "7".into())];
        let s =
            status(ErrorCode::NotOwner, "moved", Details { metadata, retry_after_ms: Some(20), field: None });
        let e = ClientError::from_status("produce", &s);
        assert_eq!(e.owner, Some(OwnerHint { address: "h:1".into(), epoch: 7 }));
        assert_eq!((e.retryable, e.retry_after), (true, Some(Duration::from_millis(20))));
        assert_eq!(e.to_string(), "produce: moved (NOT_OWNER)");
    }

    #[test]
    fn nothing_stands_in_a_message_twice() {
        let s = status(ErrorCode::TopicExists, "create topic a: it exists already", Details::default());
        let e = ClientError::from_status("create topic a", &s);
        assert_eq!(e.to_string(), "create topic a: it exists already (TOPIC_EXISTS)");
        let late = ClientError::deadline("create topic a", Some(&e));
        let last = "last answer: it exists already (TOPIC_EXISTS)";
        assert_eq!(
            late.to_string(),
            format!("create topic a: no success within the deadline; {last} (DEADLINE_EXCEEDED)")
        );
        let again = ClientError::deadline("x", Some(&ClientError::deadline("x", None)));
        assert_eq!(again.to_string().matches("(DEADLINE_EXCEEDED)").count(), 1);
        assert_eq!(again.to_string().matches("x: ").count(), 1);
    }

    #[test]
    fn statuses_without_details_are_sorted() {
        for (code, retryable) in [
            (Code::Unavailable, true),
            (Code::DeadlineExceeded, true),
            (Code::Unimplemented, false),
            (Code::InvalidArgument, false),
            (Code::Internal, false),
        ] {
            assert_eq!(ClientError::from_status("x", &Status::new(code, "y")).retryable, retryable, "{code}");
        }
    }
}
