//! One error type for all services, and its two faces: a gRPC status with `google.rpc` details, and the `Error` message of
//! an item inside a larger answer.

use tidemill_proto::{
    convert::{Details, status},
    v1,
};
use tidemill_record::BatchError;
use tidemill_types::{Endpoint, Epoch, ErrorCode, Offset, meta::Rejection};
use tonic::Status;

/// Wait before a retry when nothing better is known, ms.
const RETRY_MS: u32 = 100;

/// An answer other than success. Boxed: it is the rare way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Inner {
    code: Option<ErrorCode>,
    message: String,
    retry_after_ms: Option<u32>,
    owner: Option<String>,
    epoch: Option<Epoch>,
    field: Option<(String, String)>,
    expected_sequence: Option<i32>,
    log: Option<(Offset, Offset)>,
    extra: Vec<(&'static str, String)>,
}

impl Fault {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let retry_after_ms = code.retryable().then_some(RETRY_MS);
        Self(Box::new(Inner {
            code: Some(code),
            message: message.into(),
            retry_after_ms,
            ..Inner::default()
        }))
    }

    /// A field with a value outside what is allowed.
    pub(crate) fn invalid(field: &str, found: impl std::fmt::Display, allowed: &str) -> Self {
        Self::field(ErrorCode::InvalidArgument, field, &format!("{found} is given"), allowed)
    }

    /// The same with another code.
    pub(crate) fn field(code: ErrorCode, field: &str, why: &str, allowed: &str) -> Self {
        let mut f = Self::new(code, format!("{field}: {why}, allowed: {allowed}"));
        f.0.field = Some((field.to_owned(), allowed.to_owned()));
        f
    }

    pub(crate) fn unknown_topic(name: &str) -> Self {
        Self::new(ErrorCode::UnknownTopic, format!("topic {} does not exist", shown(name)))
    }

    pub(crate) fn tombstoned(name: &str) -> Self {
        let why = "was deleted and is not purged yet: applying it again undeletes it";
        Self::new(ErrorCode::TopicTombstoned, format!("topic {} {why}", shown(name)))
    }

    pub(crate) fn unknown_partition(topic: &str, index: u32, count: u32) -> Self {
        let allowed = format!("0 to {} for topic {topic}", count.saturating_sub(1));
        Self::field(ErrorCode::UnknownPartition, "partition", &format!("{index} is given"), &allowed)
    }

    pub(crate) fn not_owner(partition: &str, owner: Option<&Endpoint>, epoch: Epoch) -> Self {
        let to = owner.map_or_else(
            || "its owner is not known here".to_owned(),
            |e| format!("its owner is {}", address(e)),
        );
        let mut f = Self::new(ErrorCode::NotOwner, format!("this broker does not own {partition}: {to}"));
        f.0.owner = owner.map(address);
        f.0.epoch = Some(epoch);
        f
    }

    pub(crate) fn no_owner(partition: &str) -> Self {
        Self::new(ErrorCode::NoOwner, format!("nobody owns {partition} right now"))
    }

    pub(crate) fn opening(partition: &str) -> Self {
        Self::new(ErrorCode::NoOwner, format!("{partition} is being taken over by this broker"))
    }

    pub(crate) fn not_ready(why: &str) -> Self {
        Self::new(ErrorCode::NotReady, format!("this broker is not ready: {why}"))
    }

    pub(crate) fn overloaded(why: impl Into<String>) -> Self {
        Self::new(ErrorCode::Overloaded, why)
    }

    pub(crate) fn outcome_unknown(why: impl Into<String>) -> Self {
        Self::new(ErrorCode::OutcomeUnknown, why)
    }

    /// The deadline passed before anything was handed to a ledger.
    pub(crate) fn deadline_not_written() -> Self {
        Self::new(ErrorCode::DeadlineExceeded, "the deadline passed, nothing was written")
            .with("outcome", "NOT_WRITTEN")
    }

    /// The deadline passed while the write was under way.
    pub(crate) fn deadline_unknown() -> Self {
        Self::new(ErrorCode::DeadlineExceeded, "the deadline passed, the outcome is unknown")
            .with("outcome", "OUTCOME_UNKNOWN")
    }

    /// A bug, or an answer that makes no sense.
    pub(crate) fn internal(what: &str, why: &str) -> Self {
        Self::new(ErrorCode::Internal, format!("{what}: {why}"))
    }

    pub(crate) fn deadline() -> Self {
        Self::new(ErrorCode::DeadlineExceeded, "the deadline passed")
    }

    /// A batch that breaks the format. `index`: which batch of the call.
    pub(crate) fn batch(index: usize, e: &BatchError) -> Self {
        let field = format!("batches[{index}]");
        let mut f = Self::new(e.error_code(), format!("{field}: {e}"));
        f.0.field = Some((field, e.allowed()));
        f.with("batch_error", e.code())
    }

    pub(crate) fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.0.extra.push((key, value.into()));
        self
    }

    pub(crate) fn with_expected_sequence(mut self, sequence: i32) -> Self {
        self.0.expected_sequence = Some(sequence);
        self
    }

    pub(crate) fn with_log(mut self, start: Offset, end: Offset) -> Self {
        self.0.log = Some((start, end));
        self
    }

    pub(crate) fn with_retry(mut self, ms: u32) -> Self {
        self.0.retry_after_ms = Some(ms);
        self
    }

    /// The field that is wrong, and what is allowed.
    pub(crate) fn wrong_field(&self) -> Option<(&str, &str)> {
        self.0.field.as_ref().map(|(f, a)| (f.as_str(), a.as_str()))
    }

    pub(crate) fn code(&self) -> ErrorCode {
        self.0.code.unwrap_or(ErrorCode::Internal)
    }

    /// The `Error` message of an item.
    pub(crate) fn to_proto(&self) -> v1::Error {
        let i = &self.0;
        v1::Error {
            code: self.code().wire().to_owned(),
            message: i.message.clone(),
            retryable: self.code().retryable(),
            retry_after_ms: i.retry_after_ms.unwrap_or(0),
            owner: i.owner.clone().unwrap_or_default(),
            epoch: i.epoch.map_or(0, |e| e.0),
            expected_sequence: i.expected_sequence.unwrap_or(0),
            log_start: i.log.map_or(0, |l| l.0.0),
            log_end: i.log.map_or(0, |l| l.1.0),
        }
    }
}

impl From<Fault> for Status {
    fn from(f: Fault) -> Self {
        let code = f.code();
        let i = *f.0;
        let mut metadata: Vec<(String, String)> =
            i.extra.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        let mut put = |k: &str, v: Option<String>| metadata.extend(v.map(|v| (k.to_owned(), v)));
        put("owner", i.owner);
        put("epoch", i.epoch.map(|e| e.to_string()));
        put("expected_sequence", i.expected_sequence.map(|s| s.to_string()));
        put("log_start", i.log.map(|l| l.0.to_string()));
        put("log_end", i.log.map(|l| l.1.to_string()));
        status(
            code,
            &i.message,
            Details { metadata, retry_after_ms: i.retry_after_ms.map(u64::from), field: i.field },
        )
    }
}

/// What the quorum refused. `what`: what was tried.
pub(crate) fn rejected(what: &str, r: &Rejection) -> Fault {
    let code = match r {
        Rejection::SessionExpired => ErrorCode::SessionExpired,
        Rejection::OutcomeUnknown => ErrorCode::OutcomeUnknown,
        Rejection::NotInitialised => ErrorCode::NotReady,
        Rejection::WrongCluster { .. } => ErrorCode::WrongCluster,
        Rejection::NotFound { .. } => ErrorCode::UnknownTopic,
        Rejection::Exists { .. } => ErrorCode::TopicExists,
        Rejection::EpochMismatch { .. } => ErrorCode::StaleEpoch,
        Rejection::Invalid { .. } => ErrorCode::InvalidArgument,
        Rejection::BookieNotEligible { .. } => ErrorCode::NotEnoughBookies,
        Rejection::StaleOperatorEpoch { .. } => ErrorCode::StaleOperatorEpoch,
        Rejection::Claimed { .. } => ErrorCode::TopicClaimed,
        Rejection::Tombstoned { .. } => ErrorCode::TopicTombstoned,
        Rejection::FeatureLevel { .. } => ErrorCode::FeatureLevelTooLow,
        Rejection::VersionMismatch { .. }
        | Rejection::LedgerState { .. }
        | Rejection::OtherEnd { .. }
        | Rejection::NotAvailable { .. }
        | Rejection::Conflict { .. } => ErrorCode::Conflict,
    };
    match r {
        Rejection::Invalid { field, why } => Fault::field(code, field, what, why),
        _ => Fault::new(code, format!("{what}: {r}")),
    }
}

/// The partition is being taken over by this broker.
pub(crate) fn opening_of(topic: &crate::route::Topic, id: tidemill_types::PartitionId) -> Fault {
    Fault::opening(&crate::route::name_of(topic, id))
}

/// A request that could not be read: one above the size limit or of another form gets its typed error.
pub(crate) fn decoding(status: Status) -> Status {
    match unreadable(status.code(), status.message()) {
        Some(fault) => fault.into(),
        None => status,
    }
}

/// The transport refuses a message by its length before anything of it is read; nothing else says so but the text.
pub(crate) fn too_large(code: tonic::Code, message: &str) -> Option<Fault> {
    let ours = code == tonic::Code::OutOfRange && message.contains("decoded message length too large");
    ours.then(|| Fault::field(ErrorCode::MessageTooLarge, "message", message, "a message below the limit"))
}

/// The transport's error about a request that it could not read, in our form; `None` for others.
pub(crate) fn unreadable(code: tonic::Code, message: &str) -> Option<Fault> {
    too_large(code, message).or_else(|| malformed(code, message))
}

/// What the transport and the decoder of messages say of a request that is no message. They give it as their own failure,
/// and nothing else says so but the text.
const MALFORMED: [&str; 4] = [
    "failed to decode Protobuf message",
    "protocol error: received message",
    "Missing request message",
    "Unexpected EOF",
];

fn malformed(code: tonic::Code, message: &str) -> Option<Fault> {
    let ours = code == tonic::Code::Internal && MALFORMED.iter().any(|m| message.starts_with(m));
    ours.then(|| {
        let why = format!("it cannot be read ({message})");
        Fault::field(
            ErrorCode::InvalidArgument,
            "message",
            &why,
            "one message of the type that the method takes",
        )
    })
}

/// `host:port`, IPv6 in brackets.
pub(crate) fn address(e: &Endpoint) -> String {
    if e.host.contains(':') { format!("[{}]:{}", e.host, e.port) } else { format!("{}:{}", e.host, e.port) }
}

/// Text from outside, cut and quoted for a message.
pub(crate) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(64).collect();
    if cut.len() < text.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

#[cfg(test)]
mod tests {
    use tidemill_proto::convert::code_of;
    use tonic_types::StatusExt;

    use super::*;

    #[test]
    fn not_owner_names_the_owner_in_both_forms() {
        let e = Endpoint { host: "::1".into(), port: 7450 };
        let f = Fault::not_owner("orders/3", Some(&e), Epoch(9));
        let p = f.to_proto();
        assert_eq!(
            (p.code.as_str(), p.owner.as_str(), p.epoch, p.retryable),
            ("NOT_OWNER", "[::1]:7450", 9, true)
        );
        let s = Status::from(f);
        let (code, meta) = code_of(&s).unwrap();
        assert_eq!(code, ErrorCode::NotOwner);
        assert_eq!((meta["owner"].as_str(), meta["epoch"].as_str()), ("[::1]:7450", "9"));
        assert!(s.get_details_retry_info().is_some());
    }

    #[test]
    fn a_field_is_named_with_what_is_allowed() {
        let s = Status::from(Fault::unknown_partition("orders", 9, 4));
        let v = s.get_details_bad_request().unwrap().field_violations;
        assert_eq!(
            (v[0].field.as_str(), v[0].description.as_str()),
            ("partition", "0 to 3 for topic orders")
        );
        assert_eq!(s.code(), tonic::Code::OutOfRange);
    }

    #[test]
    fn long_names_are_cut_in_messages() {
        assert!(shown(&"x".repeat(1000)).len() < 80);
        assert_eq!(shown("a\n"), "\"a\\n\"");
    }
}
