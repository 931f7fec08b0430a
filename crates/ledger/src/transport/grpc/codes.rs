//! Wire codes to response classes. The only place where an explicit negative is made, and only from the two codes that are
//! one (1.1).

use std::time::Duration;

use bytes::Bytes;
use tidemill_proto::bookie::Code;
use tidemill_types::EntryId;

use crate::core::{AddAnswer, FenceAnswer, Negative, ReadAnswer, Unknown};

pub(super) fn unknown(code: Code) -> Unknown {
    match code {
        Code::Overloaded => Unknown::Overloaded,
        Code::ReadOnly => Unknown::ReadOnly,
        Code::Corrupt => Unknown::Corrupt,
        Code::WrongIdentity => Unknown::WrongIdentity,
        Code::NotReady => Unknown::NotReady,
        Code::BadEntry | Code::TooLarge | Code::Invalid => Unknown::Refused,
        Code::Unspecified
        | Code::Ok
        | Code::NoSuchEntry
        | Code::NoSuchLedger
        | Code::Fenced
        | Code::Conflict
        | Code::Unknown => Unknown::Undecided,
    }
}

/// A number that this version does not know says nothing.
pub(super) fn code(n: i32) -> Code {
    Code::try_from(n).unwrap_or(Code::Unspecified)
}

pub(super) fn add(code: Code, retry_after_ms: u32) -> AddAnswer {
    match code {
        Code::Ok => AddAnswer::Ok,
        Code::Fenced => AddAnswer::Fenced,
        Code::Conflict => AddAnswer::Conflict,
        Code::Overloaded => {
            AddAnswer::Overloaded { retry_after: Duration::from_millis(u64::from(retry_after_ms)) }
        }
        other => AddAnswer::Unknown(unknown(other)),
    }
}

pub(super) fn read(code: Code, bytes: Bytes) -> ReadAnswer<Bytes> {
    match code {
        Code::Ok => ReadAnswer::Found(bytes),
        Code::NoSuchEntry => ReadAnswer::Negative(Negative::NoSuchEntry),
        Code::NoSuchLedger => ReadAnswer::Negative(Negative::NoSuchLedger),
        other => ReadAnswer::Unknown(unknown(other)),
    }
}

pub(super) fn lac(code: Code, lac: i64) -> FenceAnswer {
    match code {
        Code::Ok if lac >= -1 => FenceAnswer::Confirmed { lac: EntryId(lac) },
        other => FenceAnswer::Unknown(unknown(other)),
    }
}

/// A failed call.
pub(super) fn status(s: &tonic::Status) -> Unknown {
    match s.code() {
        tonic::Code::DeadlineExceeded => Unknown::TimedOut,
        tonic::Code::FailedPrecondition => Unknown::WrongIdentity,
        tonic::Code::InvalidArgument => Unknown::Refused,
        tonic::Code::ResourceExhausted => Unknown::Overloaded,
        _ => Unknown::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recovery truncates on negatives: exactly two codes are one, and no error is.
    #[test]
    fn only_two_codes_are_negatives() {
        for n in -1..200 {
            let c = code(n);
            let negative = matches!(read(c, Bytes::new()), ReadAnswer::Negative(_));
            assert_eq!(negative, matches!(c, Code::NoSuchEntry | Code::NoSuchLedger), "{c:?}");
            assert_eq!(matches!(read(c, Bytes::new()), ReadAnswer::Found(_)), c == Code::Ok);
            assert_eq!(add(c, 0) == AddAnswer::Ok, c == Code::Ok);
            assert_eq!(matches!(lac(c, 3), FenceAnswer::Confirmed { .. }), c == Code::Ok);
        }
    }
}
