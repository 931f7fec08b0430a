//! From a line to a record.

use std::borrow::Cow;

use super::json;

/// How lines are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The line is the value.
    Plain,
    /// The key, the separator, the value.
    Keyed(Vec<u8>),
    /// A JSON object.
    Json,
}

/// A line as a record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed<'a> {
    pub(super) key: Option<Cow<'a, [u8]>>,
    pub(super) value: Option<Cow<'a, [u8]>>,
    pub(super) headers: Vec<(String, Option<Vec<u8>>)>,
    pub(super) timestamp: Option<i64>,
    pub(super) partition: Option<u32>,
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it, for people.
pub(super) fn parse<'a>(form: &Form, line: &'a [u8]) -> Result<Parsed<'a>, String> {
    match form {
        Form::Plain => Ok(Parsed { value: Some(Cow::Borrowed(line)), ..Parsed::default() }),
        Form::Keyed(separator) => {
            let at = find(line, separator).ok_or_else(|| {
                format!("there is no key separator {:?} in it", String::from_utf8_lossy(separator))
            })?;
            Ok(Parsed {
                key: Some(Cow::Borrowed(&line[..at])),
                value: Some(Cow::Borrowed(&line[at + separator.len()..])),
                ..Parsed::default()
            })
        }
        Form::Json => json::parse(line),
    }
}

fn find(line: &[u8], what: &[u8]) -> Option<usize> {
    match what {
        [] => None,
        [one] => line.iter().position(|b| b == one),
        _ => line.windows(what.len()).position(|w| w == what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_separator_counts() {
        let p = parse(&Form::Keyed(b":".to_vec()), b"a:b:c").unwrap();
        assert_eq!((p.key.as_deref(), p.value.as_deref()), (Some(&b"a"[..]), Some(&b"b:c"[..])));
        let p = parse(&Form::Keyed(b"::".to_vec()), b"a:b::").unwrap();
        assert_eq!((p.key.as_deref(), p.value.as_deref()), (Some(&b"a:b"[..]), Some(&b""[..])));
        let e = parse(&Form::Keyed(b"|".to_vec()), b"a:b").unwrap_err();
        assert_eq!(e, "there is no key separator \"|\" in it");
    }

    #[test]
    fn a_plain_line_is_any_bytes() {
        let p = parse(&Form::Plain, b"\xff\x00\r").unwrap();
        assert_eq!((p.key, p.value.as_deref()), (None, Some(&b"\xff\x00\r"[..])));
    }
}
