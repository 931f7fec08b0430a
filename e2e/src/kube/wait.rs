//! Waiting for something to become true.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

/// How often it is looked at.
const TICK: Duration = Duration::from_millis(200);

/// Asks until there is an answer.
///
/// # Errors
/// None within `limit`; the message holds the last reason.
pub fn until<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + limit;
    loop {
        let answer = ask();
        if let Ok(Some(found)) = answer {
            return Ok(found);
        }
        if Instant::now() >= end {
            let why = answer.err().unwrap_or_else(|| anyhow!("it is not so"));
            return Err(why).with_context(|| format!("waited {limit:?} for {what}"));
        }
        thread::park_timeout(TICK);
    }
}
