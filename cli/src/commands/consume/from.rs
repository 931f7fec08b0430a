//! `--from`.

use std::time::{SystemTime, UNIX_EPOCH};

use tidemill_client::Start;

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct From {
    pub(crate) start: Start,
}

/// Reads earliest, latest, OFFSET or @TIMESTAMP.
pub(crate) fn parse(text: &str) -> Result<From, String> {
    let start = match text {
        "earliest" => Start::Earliest,
        "latest" => Start::Latest,
        _ => match text.strip_prefix('@') {
            Some(time) => Start::Timestamp(time_ms(time)?),
            None => match text.parse::<i64>() {
                Ok(offset) if offset >= 0 => Start::Offset(offset),
                Ok(_) => return Err("an offset is 0 or more".to_owned()),
                Err(_) => return Err("earliest, latest, an offset or @TIMESTAMP expected".to_owned()),
            },
        },
    };
    Ok(From { start })
}

/// ms since 1970 from digits or RFC 3339, with `Z` or an offset of hours and minutes.
fn time_ms(text: &str) -> Result<i64, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_err(|_| format!("{text} ms are too many"));
    }
    let wrong = || "ms since 1970 or a time such as 2026-01-31T12:00:00Z expected".to_owned();
    let (local, east_minutes) = zone(text).ok_or_else(wrong)?;
    let time = humantime::parse_rfc3339(&format!("{local}Z")).map_err(|_| wrong())?;
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
    debug_assert!(time >= SystemTime::UNIX_EPOCH);
    let ms = i64::try_from(since.as_millis()).map_err(|_| wrong())?;
    Ok((ms - east_minutes * 60_000).max(0))
}

/// The local time and the minutes that it is ahead of UTC.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return Some((local, 0));
    }
    let at = text.len().checked_sub(6)?;
    let (local, zone) = (text.get(..at)?, text.get(at..)?);
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let number = |s: &str, max: i64| {
        let digits = s.len() == 2 && s.bytes().all(|b| b.is_ascii_digit());
        s.parse::<i64>().ok().filter(|n| digits && *n <= max)
    };
    Some((local, sign * (number(hours, 23)? * 60 + number(minutes, 59)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let start = |s: &str| parse(s).map(|f| f.start);
        assert_eq!(start("earliest"), Ok(Start::Earliest));
        assert_eq!(start("latest"), Ok(Start::Latest));
        assert_eq!(start("17"), Ok(Start::Offset(17)));
        assert_eq!(start("@1700000000123"), Ok(Start::Timestamp(1_700_000_000_123)));
        assert_eq!(start("@1970-01-02T00:00:01Z"), Ok(Start::Timestamp(86_401_000)));
        assert_eq!(start("@1970-01-02T00:00:01.5Z"), Ok(Start::Timestamp(86_401_500)));
        assert_eq!(start("@1970-01-02T02:30:00+02:30"), Ok(Start::Timestamp(86_400_000)));
        assert_eq!(start("@1970-01-01T19:00:00-05:00"), Ok(Start::Timestamp(86_400_000)));
        for bad in [
            "",
            "-1",
            "first",
            "@",
            "@x",
            "@1970-01-02",
            "@1970-01-02T00:00:01",
            "@99999999999999999999",
            "@1970-01-02T00:00:01+0200",
            "@1970-01-02T00:00:01+99:00",
            "@é+00:00",
            "@+é0:00",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
