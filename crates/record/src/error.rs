//! Why a batch is refused.

use tidemill_types::ErrorCode;

/// A batch that breaks the format or a limit. Each variant names the field, what was found and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end before the field does.
    #[error("{field} needs {needed} bytes, {have} are there")]
    Truncated {
        /// What was being read.
        field: &'static str,
        /// Bytes it needs.
        needed: u64,
        /// Bytes that are left.
        have: u64,
    },
    /// Bytes are left where the thing has to end.
    #[error("{bytes} bytes follow the end of {field}")]
    Trailing {
        /// What ended.
        field: &'static str,
        /// Bytes behind it.
        bytes: u64,
    },
    /// Another format version.
    #[error("magic is {found}, allowed is 2")]
    Magic {
        /// The magic byte.
        found: i8,
    },
    /// The bytes are not those that the producer wrote.
    #[error("crc32c is {computed:#010x}, the header says {stored:#010x}")]
    Crc {
        /// As in the header.
        stored: u32,
        /// As computed from the bytes.
        computed: u32,
    },
    /// A length that cannot be.
    #[error("{field} is {found}, allowed is {min} to {max}")]
    Length {
        /// The length field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// Smallest allowed value.
        min: i64,
        /// Largest allowed value.
        max: i64,
    },
    /// Above a size limit.
    #[error("{field} has {bytes} bytes, allowed are {max}")]
    TooLarge {
        /// What is too large.
        field: &'static str,
        /// Its bytes.
        bytes: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// A count that contradicts another field or the bytes.
    #[error("{field} is {found}, allowed is {min} to {max}")]
    Count {
        /// The count field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// Smallest allowed value.
        min: i64,
        /// Largest allowed value.
        max: i64,
    },
    /// More records than can come out of the bytes.
    #[error("record count is {found}, at most {fitting} records can come out of {bytes} bytes")]
    CountForBytes {
        /// The record count.
        found: i64,
        /// Bytes behind the header.
        bytes: u64,
        /// Records that can come out of them at most.
        fitting: i64,
    },
    /// A variable-length number that does not end or does not fit.
    #[error("{field} is not a varint of at most {max_bytes} bytes and {max_bits} bits")]
    Varint {
        /// The field.
        field: &'static str,
        /// Bytes allowed.
        max_bytes: u8,
        /// Bits allowed.
        max_bits: u8,
    },
    /// More headers than a record may have.
    #[error("a record has {found} headers, allowed are {max}")]
    Headers {
        /// Headers that the record claims.
        found: u64,
        /// Headers allowed.
        max: u64,
    },
    /// A compression that nobody knows.
    #[error("compression is {found}, allowed are 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd")]
    UnknownCompression {
        /// The value of attribute bits 0 to 2.
        found: u8,
    },
    /// The records would need more memory than is allowed.
    #[error("the records inflate to more than {max} bytes")]
    Inflated {
        /// Bytes allowed.
        max: u64,
    },
    /// The codec refused the bytes.
    #[error("the {codec} data is broken: {reason}")]
    Compressed {
        /// Name of the codec.
        codec: &'static str,
        /// What the codec said.
        reason: String,
    },
    /// Attribute bits that this batch must not have.
    #[error("attributes are {found:#06x}, allowed: {allowed}")]
    Attributes {
        /// The attribute bits.
        found: u16,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Producer id, epoch and sequence contradict each other or the attributes.
    #[error("{field} is {found}, allowed: {allowed}")]
    Producer {
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A time that cannot be.
    #[error("{field} is {found} ms, allowed: {allowed}")]
    Timestamp {
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Offsets that go back, repeat or leave the range of the batch.
    #[error("{field} is {found}, allowed is {min} to {max}")]
    OffsetDelta {
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// Smallest allowed value.
        min: i64,
        /// Largest allowed value.
        max: i64,
    },
    /// Not a marker of the end of a transaction.
    #[error("{field} is {found}, allowed: {allowed}")]
    Control {
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl BatchError {
    /// The stable name of the refusal. It never changes its meaning.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => "TRUNCATED_BATCH",
            Self::Trailing { .. } => "TRAILING_BYTES",
            Self::Magic { .. } => "BAD_MAGIC",
            Self::Crc { .. } => "BAD_CRC",
            Self::Length { .. } => "BAD_LENGTH",
            Self::TooLarge { .. } => "TOO_LARGE",
            Self::Count { .. } | Self::CountForBytes { .. } => "BAD_COUNT",
            Self::Varint { .. } => "BAD_VARINT",
            Self::Headers { .. } => "TOO_MANY_HEADERS",
            Self::UnknownCompression { .. } => "UNKNOWN_COMPRESSION",
            Self::Inflated { .. } => "INFLATED_TOO_LARGE",
            Self::Compressed { .. } => "BAD_COMPRESSED_DATA",
            Self::Attributes { .. } => "BAD_ATTRIBUTES",
            Self::Producer { .. } => "BAD_PRODUCER",
            Self::Timestamp { .. } => "BAD_TIMESTAMP",
            Self::OffsetDelta { .. } => "BAD_OFFSET_DELTA",
            Self::Control { .. } => "BAD_CONTROL",
        }
    }

    /// What is allowed, for the details of an answer; the display of the error has it too.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self {
            Self::Truncated { field, needed, .. } => format!("{field} of {needed} bytes"),
            Self::Trailing { field, .. } => format!("nothing behind the end of {field}"),
            Self::Magic { .. } => "magic 2".to_owned(),
            Self::Crc { computed, .. } => format!("crc32c {computed:#010x}"),
            Self::Length { field, min, max, .. }
            | Self::Count { field, min, max, .. }
            | Self::OffsetDelta { field, min, max, .. } => format!("{field} {min} to {max}"),
            Self::TooLarge { field, max, .. } => format!("{field} of at most {max} bytes"),
            Self::CountForBytes { fitting, .. } => format!("at most {fitting} records"),
            Self::Varint { max_bytes, max_bits, .. } => {
                format!("a varint of at most {max_bytes} bytes and {max_bits} bits")
            }
            Self::Headers { max, .. } => format!("at most {max} headers a record"),
            Self::UnknownCompression { .. } => "0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd".to_owned(),
            Self::Inflated { max } => format!("at most {max} bytes inflated"),
            Self::Compressed { codec, .. } => format!("valid {codec} data"),
            Self::Attributes { allowed, .. }
            | Self::Producer { allowed, .. }
            | Self::Timestamp { allowed, .. }
            | Self::Control { allowed, .. } => (*allowed).to_owned(),
        }
    }

    /// The code that a client of the API sees. [`BatchError::code`] goes beside it as detail.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::TooLarge { .. } | Self::Inflated { .. } => ErrorCode::MessageTooLarge,
            _ => ErrorCode::InvalidBatch,
        }
    }
}
