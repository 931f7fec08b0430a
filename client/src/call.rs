//! Unary calls to any broker, with retries until the deadline.

use std::{future::Future, time::Duration};

use tidemill_proto::{
    direct::Sending,
    v1::{
        admin_client::AdminClient, consumer_client::ConsumerClient, control_client::ControlClient,
        groups_client::GroupsClient, metadata_client::MetadataClient, producer_client::ProducerClient,
    },
};
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status, transport::Channel};

use crate::{Client, ClientError};

/// One try: where to and how long.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    channel: Channel,
    timeout: Duration,
    max_answer: usize,
    /// An earlier try of the same operation may have taken effect.
    pub(crate) repeated: bool,
}

impl Call {
    /// A request that tells the server the deadline.
    pub(crate) fn request<T>(&self, body: T) -> Request<T> {
        let mut request = Request::new(body);
        request.set_timeout(self.timeout);
        request
    }

    pub(crate) fn metadata(&self) -> MetadataClient<Channel> {
        MetadataClient::new(self.channel.clone()).max_decoding_message_size(self.max_answer)
    }

    pub(crate) fn admin(&self) -> AdminClient<Channel> {
        AdminClient::new(self.channel.clone()).max_decoding_message_size(self.max_answer)
    }

    pub(crate) fn control(&self) -> ControlClient<Channel> {
        ControlClient::new(self.channel.clone()).max_decoding_message_size(self.max_answer)
    }

    pub(crate) fn consumer(&self) -> ConsumerClient<Channel> {
        ConsumerClient::new(self.channel.clone()).max_decoding_message_size(self.max_answer)
    }

    pub(crate) fn groups(&self) -> GroupsClient<Channel> {
        GroupsClient::new(self.channel.clone()).max_decoding_message_size(self.max_answer)
    }

    /// What is made by [`tidemill_proto::direct::outbound`] goes over it without a copy.
    pub(crate) fn producer(&self) -> ProducerClient<Sending<Channel>> {
        ProducerClient::new(Sending(self.channel.clone())).max_decoding_message_size(self.max_answer)
    }
}

impl Client {
    /// A call to one address with a time-out of its own.
    pub(crate) fn call_to(&self, address: &str, timeout: Duration) -> Result<Call, ClientError> {
        let channel = self.inner.pool.channel(address)?;
        Ok(Call { channel, timeout, max_answer: self.inner.config.max_answer_bytes, repeated: false })
    }

    /// Tries one broker after the other until one answers, the failure is not retryable, or the deadline passes.
    pub(crate) async fn call_any<T, F, A>(&self, what: &str, make: F) -> Result<T, ClientError>
    where
        F: Fn(Call) -> A,
        A: Future<Output = Result<Response<T>, Status>>,
    {
        let deadline = self.deadline();
        let mut last: Option<ClientError> = None;
        let mut repeated = false;
        let mut attempt = 0u32;
        loop {
            let servers = self.inner.topology.servers();
            for server in &servers {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(ClientError::deadline(what, last.as_ref()));
                }
                let timeout = left.min(self.inner.config.attempt_timeout);
                let mut call = match self.call_to(server, timeout) {
                    Ok(call) => call,
                    Err(e) => {
                        last = Some(e);
                        continue;
                    }
                };
                call.repeated = repeated;
                let answer = timeout_at(Instant::now() + timeout, make(call)).await;
                let error = match answer {
                    Ok(Ok(response)) => {
                        self.inner.topology.answered(server);
                        return Ok(response.into_inner());
                    }
                    Ok(Err(status)) => ClientError::from_status(what, &status),
                    Err(_) => ClientError::deadline(what, None),
                };
                if !error.retryable {
                    return Err(error);
                }
                repeated |= error.outcome_unknown();
                let pause = error.retry_after;
                last = Some(error);
                if let Some(pause) = pause {
                    tokio::time::sleep(pause.min(left)).await;
                }
            }
            let pause = self.backoff().wait(attempt);
            attempt += 1;
            tokio::time::sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }
}
