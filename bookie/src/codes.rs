//! Answers of the engine as codes of the wire. Only explicit negatives of the engine become negatives (R14).

use tidemill_proto::bookie::Code;
use tidemill_storage::{AddOutcome, FenceOutcome, ReadOutcome, WriteOutcome};
use tidemill_types::EntryId;

/// An add's answer and its retry delay, ms.
pub(crate) fn add(outcome: &AddOutcome) -> (Code, u32) {
    let code = match outcome {
        AddOutcome::Ok => Code::Ok,
        AddOutcome::Fenced => Code::Fenced,
        AddOutcome::Overloaded { retry_after } => {
            return (Code::Overloaded, u32::try_from(retry_after.as_millis()).unwrap_or(u32::MAX).max(1));
        }
        AddOutcome::ReadOnly => Code::ReadOnly,
        AddOutcome::TooLarge { .. } => Code::TooLarge,
        AddOutcome::Invalid(_) => Code::BadEntry,
        AddOutcome::Conflict => Code::Conflict,
        // A first touch that nobody settled is no verdict.
        AddOutcome::FirstTouch { .. } | AddOutcome::Unknown(_) => Code::Unknown,
    };
    (code, 0)
}

/// A fence's answer and the LAC that goes with it.
pub(crate) fn fence(outcome: Option<FenceOutcome>) -> (Code, EntryId) {
    match outcome {
        Some(FenceOutcome::Fenced { lac, .. }) => (Code::Ok, lac),
        Some(FenceOutcome::Unknown(_)) | None => (Code::Unknown, EntryId::NONE),
    }
}

/// The answer to a durable change.
pub(crate) fn write(outcome: Option<WriteOutcome>) -> Code {
    match outcome {
        Some(WriteOutcome::Ok) => Code::Ok,
        Some(WriteOutcome::NoSuchLedger) => Code::NoSuchLedger,
        Some(WriteOutcome::ReadOnly) => Code::ReadOnly,
        Some(WriteOutcome::Unknown(_)) | None => Code::Unknown,
    }
}

/// A read's answer; the bytes of an `Ok` are taken by the caller.
pub(crate) fn read(outcome: &ReadOutcome) -> Code {
    match outcome {
        ReadOutcome::Entry(_) => Code::Ok,
        ReadOutcome::NoSuchEntry => Code::NoSuchEntry,
        ReadOutcome::NoSuchLedger => Code::NoSuchLedger,
        ReadOutcome::Corrupt => Code::Corrupt,
        ReadOutcome::Unknown(_) => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tidemill_storage::UnknownReason::{Collecting, Io, Limbo, NotWritten, Pending, Stopped};

    use super::*;

    #[test]
    fn no_unknown_becomes_a_negative() {
        for why in [Limbo, Pending, Io, Collecting, NotWritten, Stopped] {
            assert_eq!(read(&ReadOutcome::Unknown(why)), Code::Unknown);
            assert_eq!(write(Some(WriteOutcome::Unknown(why))), Code::Unknown);
            assert_eq!(fence(Some(FenceOutcome::Unknown(why))).0, Code::Unknown);
            assert_eq!(add(&AddOutcome::Unknown(why)).0, Code::Unknown);
        }
        assert_eq!(read(&ReadOutcome::Corrupt), Code::Corrupt);
        assert_eq!(read(&ReadOutcome::Entry(Bytes::new())), Code::Ok);
        assert_eq!((write(None), fence(None).0), (Code::Unknown, Code::Unknown));
    }
}
