//! The deadline that a caller set (`grpc-timeout`).

use std::{future::Future, time::Duration};

use http::HeaderMap;
use tokio::time::Instant;
use tonic::Request;

/// The broker answers a little earlier than the caller gives up, so that the answer still says what is known.
const MARGIN: Duration = Duration::from_millis(20);
/// Longest accepted deadline; more counts as none.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// When the caller stops waiting; `None` = never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

/// The deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expired;

impl Deadline {
    /// Of a request: counted from its arrival.
    pub(crate) fn of<T>(request: &Request<T>) -> Self {
        let arrived = request.extensions().get::<Self>().copied();
        arrived.unwrap_or_else(|| Self::of_headers(request.metadata().as_ref()))
    }

    /// Of a request whose headers arrived just now. A header that does not parse counts as none.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Self {
        let given = headers.get("grpc-timeout").and_then(|v| v.to_str().ok()).and_then(parse);
        Self(given.filter(|d| *d <= LONGEST).map(|d| Instant::now() + d.saturating_sub(MARGIN.min(d / 4))))
    }

    /// So far away.
    pub(crate) fn within(wait: Duration) -> Self {
        Self(Some(Instant::now() + wait))
    }

    /// This deadline, but at most so far away.
    pub(crate) fn at_most(self, wait: Duration) -> Self {
        let bound = Instant::now() + wait;
        Self(Some(self.0.map_or(bound, |at| at.min(bound))))
    }

    pub(crate) fn passed(self) -> bool {
        self.0.is_some_and(|at| at <= Instant::now())
    }

    /// Waits until it passes; for ever without one.
    pub(crate) async fn wait(self) {
        match self.0 {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Runs `f` until the deadline.
    pub(crate) async fn bound<F: Future>(self, f: F) -> Result<F::Output, Expired> {
        match self.0 {
            None => Ok(f.await),
            Some(at) => tokio::time::timeout_at(at, f).await.map_err(|_| Expired),
        }
    }
}

/// `1S`, `250m`, at most eight digits and one of `H M S m u n`.
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let n: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(n * 3600),
        "M" => Duration::from_secs(n * 60),
        "S" => Duration::from_secs(n),
        "m" => Duration::from_millis(n),
        "u" => Duration::from_micros(n),
        "n" => Duration::from_nanos(n),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        assert_eq!(parse("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for bad in ["", "m", "1", "1x", "-1m", "123456789m", "1é"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn an_expired_one_has_passed() {
        let mut r = Request::new(());
        assert!(!Deadline::of(&r).passed());
        assert!(Deadline::of(&r).0.is_none());
        r.metadata_mut().insert("grpc-timeout", "0n".parse().unwrap());
        let d = Deadline::of(&r);
        assert!(d.passed());
        assert_eq!(d.bound(std::future::pending::<()>()).await, Err(Expired));
    }
}
