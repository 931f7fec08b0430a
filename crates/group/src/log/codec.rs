//! Bytes of keys and values: a version byte, then postcard.

use serde::{Serialize, de::DeserializeOwned};

use super::{Key, Record, Value};

/// First byte of every key and value.
pub const RECORD_VERSION: u8 = 1;
/// Longest key, bytes.
pub const MAX_KEY_LEN: usize = 2 << 10;
/// Longest value, bytes: a member of the largest groups.
pub const MAX_VALUE_LEN: usize = 1 << 20;

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Written by another version.
    #[error("the {what} has version {version}, only {RECORD_VERSION} is known")]
    Version {
        /// Key or value.
        what: &'static str,
        /// Its version byte.
        version: u8,
    },
    /// Empty, too long, or not what this type looks like.
    #[error("the {what} cannot be read: {why}")]
    Malformed {
        /// Key or value.
        what: &'static str,
        /// Why.
        why: String,
    },
}

fn write<T: Serialize>(what: &'static str, max: usize, v: &T) -> Result<Vec<u8>, RecordError> {
    let malformed = |why: String| RecordError::Malformed { what, why };
    let bytes = postcard::to_extend(v, vec![RECORD_VERSION]).map_err(|e| malformed(e.to_string()))?;
    if bytes.len() > max {
        return Err(malformed(format!("{} bytes, at most {max}", bytes.len())));
    }
    Ok(bytes)
}

fn read<T: DeserializeOwned>(what: &'static str, max: usize, bytes: &[u8]) -> Result<T, RecordError> {
    let malformed = |why: String| RecordError::Malformed { what, why };
    if bytes.len() > max {
        return Err(malformed(format!("{} bytes, at most {max}", bytes.len())));
    }
    match bytes.split_first() {
        None => Err(malformed("it is empty".into())),
        Some((&RECORD_VERSION, rest)) => match postcard::take_from_bytes(rest) {
            Ok((v, [])) => Ok(v),
            Ok((_, more)) => Err(malformed(format!("{} bytes follow", more.len()))),
            Err(e) => Err(malformed(e.to_string())),
        },
        Some((&version, _)) => Err(RecordError::Version { what, version }),
    }
}

/// Key and value of a record.
///
/// # Errors
/// `Malformed` above [`MAX_KEY_LEN`] or [`MAX_VALUE_LEN`].
pub fn encode(r: &Record) -> Result<(Vec<u8>, Option<Vec<u8>>), RecordError> {
    let value = r.value.as_ref().map(|v| write("value", MAX_VALUE_LEN, v)).transpose()?;
    Ok((write("key", MAX_KEY_LEN, &r.key)?, value))
}

/// Reads a record; every byte must belong to it, and key and value must be of one kind.
///
/// # Errors
/// Any [`RecordError`].
pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Record, RecordError> {
    let key: Key = read("key", MAX_KEY_LEN, key)?;
    let value: Option<Value> = value.map(|v| read("value", MAX_VALUE_LEN, v)).transpose()?;
    let fits = matches!(
        (&key, &value),
        (_, None)
            | (Key::Group(_), Some(Value::Group(_)))
            | (Key::Member(..), Some(Value::Member(_)))
            | (Key::Offset(..), Some(Value::Offset(_)))
            | (Key::Declared(_), Some(Value::Declared(_)))
    );
    if fits {
        Ok(Record { key, value })
    } else {
        Err(RecordError::Malformed { what: "value", why: "it is of another kind than the key".into() })
    }
}
