//! Calls to the coordinator of a group, wherever it is.

use std::{collections::HashMap, future::Future, sync::Arc};

use parking_lot::Mutex;
use tidemill_proto::v1;
use tidemill_types::ErrorCode;
use tokio::time::{Instant, timeout_at};
use tonic::{Response, Status};

use crate::{Client, ClientError, call::Call};

/// Known coordinators; more groups than this are looked up each time.
const MAX_KNOWN: usize = 100_000;

/// Where coordinators were last.
#[derive(Debug, Default)]
pub(crate) struct Coordinators(Mutex<HashMap<String, Arc<str>>>);

impl Coordinators {
    fn get(&self, group: &str) -> Option<Arc<str>> {
        self.0.lock().get(group).cloned()
    }

    fn put(&self, group: &str, address: &str) -> Arc<str> {
        let mut known = self.0.lock();
        let address: Arc<str> = Arc::from(address);
        if known.len() < MAX_KNOWN || known.contains_key(group) {
            known.insert(group.to_owned(), address.clone());
        }
        address
    }

    /// What an error says about where the coordinator is.
    pub(super) fn learn(&self, group: &str, e: &ClientError) {
        match (&e.owner, e.code) {
            (Some(o), _) => {
                self.put(group, &o.address);
            }
            (None, None | Some(ErrorCode::NotOwner | ErrorCode::NoOwner | ErrorCode::DeadlineExceeded)) => {
                self.0.lock().remove(group);
            }
            _ => {}
        }
    }
}

impl Client {
    /// The address of a group's coordinator.
    pub(super) async fn coordinator(&self, group: &str) -> Result<Arc<str>, ClientError> {
        if let Some(known) = self.inner.coordinators.get(group) {
            return Ok(known);
        }
        let found = self
            .call_any(&format!("find the coordinator of group {group}"), |call| {
                let request = call.request(v1::FindCoordinatorRequest { group: group.to_owned() });
                async move { call.groups().find_coordinator(request).await }
            })
            .await?;
        Ok(self.inner.coordinators.put(group, &found.address))
    }

    /// Calls the coordinator, follows it when it moves, and tries again what can succeed later, until the client's deadline.
    pub(super) async fn call_coordinator<T, F, A>(
        &self,
        group: &str,
        what: &str,
        make: F,
    ) -> Result<T, ClientError>
    where
        F: Fn(Call) -> A,
        A: Future<Output = Result<Response<T>, Status>>,
    {
        let deadline = self.deadline();
        let mut last: Option<ClientError> = None;
        let mut attempt = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ClientError::deadline(what, last.as_ref()));
            }
            let address = self.coordinator(group).await?;
            let timeout = left.min(self.inner.config.attempt_timeout);
            let call = self.call_to(&address, timeout)?;
            let error = match timeout_at(Instant::now() + timeout, make(call)).await {
                Ok(Ok(response)) => return Ok(response.into_inner()),
                Ok(Err(status)) => ClientError::from_status(what, &status),
                Err(_) => ClientError::deadline(what, None),
            };
            if !error.retryable {
                return Err(error);
            }
            self.inner.coordinators.learn(group, &error);
            // A hint is followed at once, the first time.
            let free = error.owner.is_some() && attempt == 0;
            let pause = error.retry_after.unwrap_or_default().max(self.backoff().wait(attempt));
            attempt += 1;
            last = Some(error);
            if !free {
                tokio::time::sleep(pause.min(left)).await;
            }
        }
    }
}
