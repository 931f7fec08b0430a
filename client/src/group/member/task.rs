//! The task that keeps a member in its group: joins again when it must, says farewell.

use std::time::Duration;

use tidemill_proto::v1;
use tidemill_types::ErrorCode;
use tokio::time::{sleep, timeout};

use super::{FAREWELL, Member, stream::Ended};

impl Member {
    /// Until the member stops, or cannot go on.
    pub(super) async fn run(&self) {
        let mut attempt = 0;
        loop {
            let error = tokio::select! {
                error = self.session() => error,
                () = self.stop.cancelled() => break,
            };
            let heard = self.state.lock().current.is_some();
            match error {
                // It left because nobody polled: back with the next poll.
                Ended::Away => {
                    self.farewell().await;
                    self.state.lock().out();
                    self.news.notify_waiters();
                    loop {
                        if !self.state.lock().away {
                            break;
                        }
                        tokio::select! {
                            () = self.kick.notified() => {}
                            () = self.stop.cancelled() => return,
                        }
                    }
                    continue;
                }
                Ended::Failed(e) => match e.code {
                    Some(ErrorCode::UnknownMember | ErrorCode::FencedMember | ErrorCode::UnknownGroup) => {
                        tracing::debug!(group = self.config.group, error = %e, "joins again");
                        self.state.lock().out();
                        self.news.notify_waiters();
                    }
                    _ if !e.retryable => {
                        self.state.lock().fatal = Some(e);
                        self.news.notify_waiters();
                        return;
                    }
                    _ => {
                        self.state.lock().last = Some(e.clone());
                        self.client.inner.coordinators.learn(&self.config.group, &e);
                        let pause =
                            e.retry_after.unwrap_or_default().max(self.client.backoff().wait(attempt));
                        attempt = if heard && attempt > 4 { 0 } else { attempt + 1 };
                        tokio::select! {
                            () = sleep(if e.owner.is_some() && attempt == 1 { Duration::ZERO } else { pause }) => {}
                            () = self.stop.cancelled() => break,
                        }
                    }
                },
            }
        }
        if self.state.lock().farewell {
            self.farewell().await;
        }
    }

    async fn farewell(&self) {
        let Some((_, epoch)) = self.epoch() else { return };
        let request = v1::LeaveGroupRequest {
            group: self.config.group.clone(),
            member: self.id.clone(),
            epoch,
            comes_back: self.config.instance.is_some(),
        };
        let leave = self.client.call_coordinator(&self.config.group, "leave a group", |call| {
            let request = call.request(request.clone());
            async move { call.groups().leave_group(request).await }
        });
        // The session ends it otherwise.
        drop(timeout(FAREWELL, leave).await);
    }
}
