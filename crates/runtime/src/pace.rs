//! Bytes a second that work in the background may move, so that it leaves disk and network to producers.

use std::time::Duration;

use tokio::{sync::Mutex, time::Instant};

/// The pace. Waits are in order.
#[derive(Debug)]
pub struct Pace {
    bytes_per_second: u64,
    /// When the next bytes may go.
    next: Mutex<Instant>,
}

impl Pace {
    /// At most so many bytes a second; 0 counts as 1.
    #[must_use]
    pub fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), next: Mutex::new(Instant::now()) }
    }

    /// Waits until `bytes` may be moved.
    pub async fn wait(&self, bytes: usize) {
        let micros = (bytes as u64).saturating_mul(1_000_000).checked_div(self.bytes_per_second);
        let mut next = self.next.lock().await;
        let at = (*next).max(Instant::now());
        *next = at + Duration::from_micros(micros.unwrap_or(0));
        drop(next);
        tokio::time::sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_of_bytes_takes_a_second() {
        let pace = Pace::new(1_000);
        let start = Instant::now();
        for _ in 0..11 {
            pace.wait(100).await;
        }
        assert_eq!(start.elapsed(), Duration::from_secs(1), "ten parts of a tenth stand before the eleventh");
    }
}
