//! Conversions between wire fields and typed ids, and between error codes and gRPC statuses.

use tidemill_types::{ClusterId, ErrorCode, Incarnation, MemberId, StatusClass};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::bookie::Identity;

/// Domain of `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "tidemill";

/// What an error carries besides its code: the fields of `google.rpc` details.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// `ErrorInfo.metadata`, such as `owner` and `epoch`.
    pub metadata: Vec<(String, String)>,
    /// `RetryInfo`, ms.
    pub retry_after_ms: Option<u64>,
    /// `BadRequest`: field and what is allowed.
    pub field: Option<(String, String)>,
}

/// A status of `code` with details.
#[must_use]
pub fn status(code: ErrorCode, message: &str, details: Details) -> Status {
    let mut d = ErrorDetails::with_error_info(
        code.wire(),
        DOMAIN,
        details.metadata.into_iter().collect::<std::collections::HashMap<_, _>>(),
    );
    if let Some(ms) = details.retry_after_ms {
        d.set_retry_info(Some(std::time::Duration::from_millis(ms)));
    }
    if let Some((field, allowed)) = details.field {
        d.add_bad_request_violation(field, allowed);
    }
    Status::with_error_details(grpc_code(code.class()), message, d)
}

/// The code and metadata of a status that [`status`] made; `None` for other statuses.
#[must_use]
pub fn code_of(status: &Status) -> Option<(ErrorCode, std::collections::HashMap<String, String>)> {
    let info = status.get_details_error_info()?;
    if info.domain != DOMAIN {
        return None;
    }
    ErrorCode::from_wire(&info.reason).map(|c| (c, info.metadata))
}

fn grpc_code(class: StatusClass) -> Code {
    match class {
        StatusClass::InvalidArgument => Code::InvalidArgument,
        StatusClass::OutOfRange => Code::OutOfRange,
        StatusClass::NotFound => Code::NotFound,
        StatusClass::AlreadyExists => Code::AlreadyExists,
        StatusClass::FailedPrecondition => Code::FailedPrecondition,
        StatusClass::Aborted => Code::Aborted,
        StatusClass::ResourceExhausted => Code::ResourceExhausted,
        StatusClass::Unavailable => Code::Unavailable,
        StatusClass::DeadlineExceeded => Code::DeadlineExceeded,
        StatusClass::Unimplemented => Code::Unimplemented,
        StatusClass::DataLoss => Code::DataLoss,
        StatusClass::Internal => Code::Internal,
    }
}

/// A uuid field that is not 16 bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {len} bytes, a uuid has 16")]
pub struct BadUuid {
    /// The field.
    pub field: &'static str,
    /// Its length.
    pub len: usize,
}

/// A uuid from a bytes field.
///
/// # Errors
/// [`BadUuid`] when it is not 16 bytes long.
pub fn uuid(field: &'static str, b: &[u8]) -> Result<uuid::Uuid, BadUuid> {
    uuid::Uuid::from_slice(b).map_err(|_| BadUuid { field, len: b.len() })
}

/// The identity message for a bookie stream (R26).
#[must_use]
pub fn identity(cluster: ClusterId, bookie: MemberId, incarnation: Incarnation) -> Identity {
    Identity {
        cluster: cluster.0.as_bytes().to_vec(),
        bookie: bookie.0.as_bytes().to_vec(),
        incarnation: incarnation.0,
    }
}

/// Reads an identity message.
///
/// # Errors
/// [`BadUuid`].
pub fn parse_identity(i: &Identity) -> Result<(ClusterId, MemberId, Incarnation), BadUuid> {
    Ok((
        ClusterId(uuid("cluster", &i.cluster)?),
        MemberId(uuid("bookie", &i.bookie)?),
        Incarnation(i.incarnation),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_keeps_its_code_and_details() {
        let s = status(
            ErrorCode::NotOwner,
            "moved",
            Details { metadata: vec![("owner".into(), "h:1".into())], retry_after_ms: Some(5), field: None },
        );
        let (code, meta) = code_of(&s).unwrap();
        assert_eq!((code, meta["owner"].as_str()), (ErrorCode::NotOwner, "h:1"));
        assert_eq!(s.code(), Code::FailedPrecondition);
        assert!(code_of(&Status::internal("x")).is_none());
    }
}
