//! Waiting on conditions.

use std::{future::Future, time::Duration};

/// Far above what anything here takes, also on a busy machine: reached only by a bug.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Asks again and again until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(t) = ask().await {
                return t;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, asking).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// Waits for a future that must end.
pub(crate) async fn soon<T>(what: &str, f: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, f).await.unwrap_or_else(|_| panic!("never came: {what}"))
}
