//! Sizes as Kubernetes writes them: `10Gi`, `500M`, `2`; processor shares `500m`.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::ParseError;

/// A quantity as text. Kept as written: nothing changes it, so nothing drifts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

/// Factors of suffixes; `m` is a thousandth and stands apart.
const SUFFIXES: [(&str, u128); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

impl Quantity {
    /// From text, unchecked.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Thousandths, so that `500m` and `1.5Gi` are exact enough to compare; rounded down.
    ///
    /// # Errors
    /// [`ParseError`] for anything but digits, at most one point, and a suffix.
    pub fn milli(&self) -> Result<u128, ParseError> {
        let text = self.0.as_str();
        let fail = || ParseError { text: text.to_owned(), what: "a quantity such as 10Gi, 500M or 250m" };
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || whole.len() > 18 || part.len() > 9 || part.contains('.') {
            return Err(fail());
        }
        let nano = format!("{whole}{part:0<9}").parse::<u128>().map_err(|_| fail())?;
        let milli = match suffix {
            "" => nano / 1_000_000,
            "m" => nano / 1_000_000_000,
            _ => {
                let (_, factor) = SUFFIXES.iter().find(|(s, _)| *s == suffix).ok_or_else(fail)?;
                nano.checked_mul(*factor).ok_or_else(fail)? / 1_000_000
            }
        };
        Ok(milli)
    }

    /// Bytes, rounded down.
    ///
    /// # Errors
    /// [`ParseError`] when it is no quantity or past 2^63.
    pub fn bytes(&self) -> Result<u64, ParseError> {
        let fail = || ParseError { text: self.0.clone(), what: "a size below 8Ei" };
        u64::try_from(self.milli()? / 1_000).ok().filter(|b| i64::try_from(*b).is_ok()).ok_or_else(fail)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 24,
            "pattern": r"^[0-9]{1,18}(\.[0-9]{1,9})?(m|Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        let bytes = |t: &str| Quantity::new(t).bytes();
        assert_eq!(bytes("10Gi").unwrap(), 10 << 30);
        assert_eq!(bytes("1.5Gi").unwrap(), 3 << 29);
        assert_eq!(bytes("500M").unwrap(), 500_000_000);
        assert_eq!(bytes("7").unwrap(), 7);
        assert_eq!(Quantity::new("250m").milli().unwrap(), 250);
        assert_eq!(bytes("8Ei").unwrap_err().to_string(), "\"8Ei\" is not a size below 8Ei");
        for bad in ["", "Gi", "1.2.3", "-1", "1e3", "1 Gi", "1gi", "9999999999999999999"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
