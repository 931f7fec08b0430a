//! `--from`.

use std::{collections::HashMap, time::UNIX_EPOCH};

use tidemill_client::{At, Client, Consumer, OffsetQuery, Start, TopicPartition};

use crate::{commands::connect::failed, error::CliError};

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Earliest,
    Latest,
    Offset(i64),
    Timestamp(i64),
}

impl From {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: earliest, latest, an offset from 0, or @TIME expected");
        match text {
            "earliest" => return Ok(Self::Earliest),
            "latest" => return Ok(Self::Latest),
            _ => {}
        }
        if let Some(time) = text.strip_prefix('@') {
            if let Ok(ms) = time.parse::<i64>() {
                return Ok(Self::Timestamp(ms));
            }
            let at = humantime::parse_rfc3339_weak(time).map_err(|e| format!("{text:?}: {e}"))?;
            let ms = at.duration_since(UNIX_EPOCH).map_err(|_| wrong())?.as_millis();
            return i64::try_from(ms).map(Self::Timestamp).map_err(|_| wrong());
        }
        text.parse::<i64>().ok().filter(|o| *o >= 0).map(Self::Offset).ok_or_else(wrong)
    }

    pub(super) fn start(self) -> Start {
        match self {
            Self::Earliest => Start::Earliest,
            Self::Latest => Start::Latest,
            Self::Offset(o) => Start::Offset(o),
            Self::Timestamp(ms) => Start::Timestamp(ms),
        }
    }
}

/// The offset at which each assigned partition begins.
pub(super) async fn positions(
    client: &Client,
    consumer: &Consumer,
    from: From,
) -> Result<HashMap<TopicPartition, i64>, CliError> {
    let all = consumer.assignment();
    let at = match from {
        From::Offset(o) => return Ok(all.into_iter().map(|s| (s, o)).collect()),
        From::Earliest => At::Earliest,
        From::Latest => At::Latest,
        From::Timestamp(ms) => At::Timestamp(ms),
    };
    let queries: Vec<OffsetQuery> =
        all.iter().map(|s| OffsetQuery { topic: s.topic.clone(), partition: s.partition, at }).collect();
    let found = client.list_offsets(&queries).await.map_err(|e| failed(&e))?;
    // No record at or after the time: the partition begins at its end.
    Ok(all.into_iter().zip(found).map(|(s, r)| (s, r.offset.unwrap_or(i64::MAX))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        assert_eq!(From::parse("12"), Ok(From::Offset(12)));
        assert_eq!(From::parse("@1700000000000"), Ok(From::Timestamp(1_700_000_000_000)));
        assert_eq!(From::parse("@1970-01-01T00:00:01Z"), Ok(From::Timestamp(1_000)));
        assert!(
            From::parse("-1").is_err() && From::parse("first").is_err() && From::parse("@never").is_err()
        );
    }
}
