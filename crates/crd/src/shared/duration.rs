//! Durations as people write them: `72h`, `7d`, `1h30m`, `250ms`.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::ParseError;

/// A duration as text. Kept as written: nothing changes it, so nothing drifts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

/// Units, longest name first where one begins with another.
const UNITS: [(&str, u64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

impl Duration {
    /// From text, unchecked.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Milliseconds.
    ///
    /// # Errors
    /// [`ParseError`] for anything but numbers with units, or more than 2^63 ms.
    pub fn millis(&self) -> Result<u64, ParseError> {
        let fail = || ParseError { text: self.0.clone(), what: "a duration such as 72h, 7d or 1h30m" };
        let mut rest = self.0.as_str();
        let mut sum = 0u64;
        if rest.is_empty() {
            return Err(fail());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(fail)?;
            let (number, after) = rest.split_at(digits);
            let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
            let (unit, next) = after.split_at(unit_end);
            let (_, factor) = UNITS.iter().find(|(u, _)| *u == unit).ok_or_else(fail)?;
            let number = number.parse::<u64>().map_err(|_| fail())?;
            sum = number.checked_mul(*factor).and_then(|n| sum.checked_add(n)).ok_or_else(fail)?;
            rest = next;
        }
        i64::try_from(sum).map_err(|_| fail())?;
        Ok(sum)
    }

    /// As the standard library's type.
    ///
    /// # Errors
    /// As [`Self::millis`].
    pub fn std(&self) -> Result<std::time::Duration, ParseError> {
        self.millis().map(std::time::Duration::from_millis)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 32,
            "pattern": r"^([0-9]{1,12}(ms|s|m|h|d|w))+$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let ms = |t: &str| Duration::new(t).millis();
        assert_eq!(ms("72h").unwrap(), 72 * 3_600_000);
        assert_eq!(ms("1h30m").unwrap(), 5_400_000);
        assert_eq!(ms("250ms").unwrap(), 250);
        assert_eq!(ms("1m1ms").unwrap(), 60_001);
        assert_eq!(ms("0s").unwrap(), 0);
        for bad in ["", "5", "h", "1.5h", "-1s", "1 h", "99999999999w99999999999w", "1y"] {
            assert!(ms(bad).is_err(), "{bad}");
        }
    }
}
