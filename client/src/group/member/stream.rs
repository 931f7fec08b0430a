//! One stream to the coordinator: a join or the next heartbeat opens it, then heartbeats go up and assignments come down.

use std::time::Duration;

use tidemill_proto::v1::{self, subscribe_request::Request};
use tidemill_types::ErrorCode;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_stream::wrappers::ReceiverStream;

use super::Member;
use crate::ClientError;

/// A stream's opening, and its first answer.
const OPEN: Duration = Duration::from_secs(10);
/// A coordinator that does not answer a heartbeat for so many intervals is looked for again.
const SILENT: u32 = 3;

/// Why a stream is over.
pub(super) enum Ended {
    /// Nobody polls.
    Away,
    /// Broken, refused, or silent.
    Failed(ClientError),
}

impl Member {
    /// One stream: joins, or goes on as what it is, then heartbeats.
    pub(super) async fn session(&self) -> Ended {
        match self.stream().await {
            Ok(ended) => ended,
            Err(e) => Ended::Failed(e),
        }
    }

    async fn stream(&self) -> Result<Ended, ClientError> {
        let what = format!("member {} of group {}", self.id, self.config.group);
        let address = self.client.coordinator(&self.config.group).await?;
        let call = self.client.call_to(&address, OPEN)?;
        let (tx, rx) = mpsc::channel(8);
        let mut sent = Instant::now();
        let first = self.opening();
        drop(tx.send(first).await);
        // No deadline of the call as a whole: it lives as long as the member.
        let opening = call.groups();
        let answer = timeout(OPEN, async move {
            let mut opening = opening;
            opening.subscribe(ReceiverStream::new(rx)).await
        })
        .await;
        let mut answers = match answer {
            Err(_) => return Err(ClientError::deadline(&what, None)),
            Ok(Err(status)) => return Err(ClientError::from_status(&what, &status)),
            Ok(Ok(r)) => r.into_inner(),
        };
        let mut interval = Duration::from_secs(3);
        // The first answer comes for what opened the stream.
        let mut waits = true;
        loop {
            let (polled, in_group) = {
                let state = self.state.lock();
                (state.polled, state.current.is_some())
            };
            let patience = if in_group { interval * SILENT } else { OPEN };
            let poll_by = polled + self.config.max_poll_interval;
            tokio::select! {
                answer = answers.message() => match answer {
                    Ok(Some(r)) => {
                        waits = false;
                        if let Some(a) = r.assignment {
                            interval = Duration::from_millis(a.heartbeat_interval_ms.max(1).into());
                            self.take(a, sent);
                        }
                    }
                    Ok(None) => return Err(ClientError::new(ErrorCode::NotReady, format!("{what}: the stream ended"))),
                    Err(status) => return Err(ClientError::from_status(&what, &status)),
                },
                () = sleep_until(sent + patience), if waits => return Err(ClientError::deadline(&what, None)),
                () = sleep_until(poll_by), if in_group => {
                    let mut state = self.state.lock();
                    if state.polled.elapsed() >= self.config.max_poll_interval {
                        tracing::warn!(group = self.config.group, "nobody polls: the member leaves");
                        state.away = true;
                        return Ok(Ended::Away);
                    }
                }
                () = self.beat(sent + interval), if !waits => {
                    let Some(request) = self.heartbeat() else {
                        return Err(ClientError::new(ErrorCode::UnknownMember, format!("{what}: not in the group")));
                    };
                    sent = Instant::now();
                    waits = true;
                    if tx.send(request).await.is_err() {
                        return Err(ClientError::new(ErrorCode::NotReady, format!("{what}: the stream broke")));
                    }
                }
            }
        }
    }

    async fn beat(&self, at: Instant) {
        tokio::select! {
            () = sleep_until(at) => {}
            () = self.kick.notified() => {}
        }
    }

    /// The request that opens a stream.
    fn opening(&self) -> v1::SubscribeRequest {
        if let Some(beat) = self.heartbeat() {
            return beat;
        }
        let state = self.state.lock();
        let ms = |t: Option<Duration>| t.map_or(0, |t| u32::try_from(t.as_millis()).unwrap_or(u32::MAX));
        let c = &self.config;
        let join = v1::JoinGroupRequest {
            group: c.group.clone(),
            member: self.id.clone(),
            incarnation: self.incarnation,
            attempt: state.attempt,
            instance: c.instance.clone().unwrap_or_default(),
            subscription: Some(v1::Subscription {
                topics: c.topics.clone(),
                pattern: c.pattern.clone().unwrap_or_default(),
            }),
            session_timeout_ms: ms(c.session_timeout),
            rebalance_timeout_ms: ms(c.rebalance_timeout),
            client: c.client.clone(),
        };
        v1::SubscribeRequest { request: Some(Request::Join(join)) }
    }

    fn heartbeat(&self) -> Option<v1::SubscribeRequest> {
        let state = self.state.lock();
        let a = state.current.as_ref()?;
        let partitions = state
            .owned
            .iter()
            .map(|(p, topic_id)| v1::GroupPartition {
                topic: p.topic.to_string(),
                partition: p.partition,
                topic_id: *topic_id,
            })
            .collect();
        let beat = v1::HeartbeatRequest {
            group: self.config.group.clone(),
            member: self.id.clone(),
            epoch: a.epoch,
            revision: state.applied,
            owned: Some(v1::OwnedPartitions { partitions }),
            subscription: None,
        };
        Some(v1::SubscribeRequest { request: Some(Request::Heartbeat(beat)) })
    }

    /// An assignment came. Streams keep order, and one that was replaced is not read any more: it is never an older one.
    fn take(&self, a: v1::GroupAssignment, sent: Instant) {
        let mut state = self.state.lock();
        if state.current.is_none() {
            state.life += 1;
            state.attempt += 1;
            state.applied = 0;
            state.owned.clear();
        }
        state.heard = sent;
        let news = state.current.as_ref() != Some(&a);
        state.current = Some(a);
        drop(state);
        if news {
            self.news.notify_waiters();
        }
    }
}
