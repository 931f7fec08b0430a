//! The operator's connection to one Cluster's data plane, kept from pass to pass.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tidemill_client::{Admin, Client, ClientConfig, ClientError, Control, ErrorCode, Groups, v1};
use tidemill_runtime::Supervisor;

use crate::{
    names::{Names, PORT_GRPC},
    observe::{Observed, Peers},
};

/// Deadline of one operation through a broker: a Cluster that does not answer must not slow others down.
const TIMEOUT: Duration = Duration::from_secs(5);
/// One try.
const ATTEMPT: Duration = Duration::from_secs(3);

/// A connection to a Cluster.
#[derive(Debug)]
pub struct Link {
    peers: Peers,
    server: String,
    client: tokio::sync::Mutex<Option<Client>>,
    clean_since: Mutex<Option<Instant>>,
    identity: String,
    /// The operator epoch of this process (rule 15).
    epoch: tokio::sync::Mutex<Option<u64>>,
}

impl Link {
    /// Nothing is sent yet.
    #[must_use]
    pub fn new(names: &Names, metas: i32, identity: &str, supervisor: &Supervisor) -> Self {
        Self {
            peers: Peers::new(names.meta_addresses(metas), supervisor),
            server: format!("{}:{PORT_GRPC}", names.client_host()),
            client: tokio::sync::Mutex::new(None),
            clean_since: Mutex::new(None),
            identity: identity.to_owned(),
            epoch: tokio::sync::Mutex::new(None),
        }
    }

    /// The members, one by one.
    #[must_use]
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// A client through the brokers.
    ///
    /// # Errors
    /// No broker answers.
    pub async fn client(&self) -> Result<Client, String> {
        let mut held = self.client.lock().await;
        if let Some(client) = held.as_ref() {
            return Ok(client.clone());
        }
        let config = ClientConfig {
            timeout: TIMEOUT,
            attempt_timeout: ATTEMPT,
            ..ClientConfig::new([self.server.clone()])
        };
        let client = Client::connect(config).await.map_err(|e| {
            tracing::debug!(server = self.server, error = %e, "no broker answers");
            "no broker answers".to_owned()
        })?;
        *held = Some(client.clone());
        Ok(client)
    }

    /// Administration through the brokers, under the same epoch as [`Self::control`] (rule 15).
    ///
    /// # Errors
    /// No broker answers.
    pub async fn admin(&self) -> Result<Admin, String> {
        let client = self.client().await?;
        let epoch = self.epoch(&client.control()).await?;
        Ok(client.admin().with_operator_epoch(epoch))
    }

    /// Declared wishes, under an epoch that a later operator takes over: then every call is refused.
    ///
    /// # Errors
    /// No broker answers.
    pub async fn control(&self) -> Result<Control, String> {
        let control = self.client().await?.control();
        let epoch = self.epoch(&control).await?;
        Ok(control.with_operator_epoch(epoch))
    }

    /// Groups, under the same epoch.
    ///
    /// # Errors
    /// No broker answers.
    pub async fn groups(&self) -> Result<Groups, String> {
        let client = self.client().await?;
        let epoch = self.epoch(&client.control()).await?;
        Ok(client.groups().with_operator_epoch(epoch))
    }

    async fn epoch(&self, control: &Control) -> Result<u64, String> {
        let mut epoch = self.epoch.lock().await;
        match *epoch {
            Some(held) => Ok(held),
            None => {
                let acquired = control.acquire_operator_epoch(&self.identity).await.map_err(|e| {
                    tracing::debug!(server = self.server, error = %e, "no operator epoch");
                    no_answer(&e)
                })?;
                *epoch = Some(acquired);
                Ok(acquired)
            }
        }
    }

    /// The epoch was taken over. Asking for another one is right only for the process that leads, and one that does not
    /// ends (election).
    pub fn forget_epoch(&self) {
        if let Ok(mut epoch) = self.epoch.try_lock() {
            *epoch = None;
        }
    }

    /// What a failed call comes to in a condition. An epoch that was taken over is asked for anew by the next call: without
    /// that, this process would be refused for the rest of its life.
    pub(crate) fn unanswered(&self, e: &ClientError) -> String {
        if e.code == Some(ErrorCode::StaleOperatorEpoch) {
            self.forget_epoch();
        }
        no_answer(e)
    }

    /// Asks the quorum what speaks against the restart of these members (rule 11). Codes alone: numbers in the answer move.
    pub async fn consents(self: &Arc<Self>, members: Vec<String>, observed: &mut Observed) {
        let control = self.control().await;
        for member in members {
            let answer = match &control {
                Ok(control) => {
                    let action = v1::MemberAction::Restart.into();
                    let request = v1::CheckMemberRequest { member: member.clone(), action };
                    control.check_member(request).await.map_err(|e| self.unanswered(&e))
                }
                Err(why) => Err(why.clone()),
            };
            let answer = answer.map(|a| {
                let mut codes: Vec<String> = a.reasons.into_iter().map(|r| r.code).collect();
                codes.sort();
                codes.dedup();
                codes
            });
            observed.consents.insert(member, answer);
        }
    }

    /// Adds what needs memory or a broker: how long all copies have been there, and what still needs a bookie that goes.
    pub async fn complete(self: &Arc<Self>, observed: &mut Observed) {
        let clean = matches!(&observed.quorum, Some(Ok(q)) if q.under == Ok(0));
        observed.clean_for_s = {
            let mut since = self.clean_since.lock();
            if clean {
                since.get_or_insert_with(Instant::now).elapsed().as_secs()
            } else {
                *since = None;
                0
            }
        };
        let Some(Ok(quorum)) = &observed.quorum else { return };
        let going: Vec<String> = quorum
            .members
            .iter()
            .filter(|m| m.role == "bookie" && (m.state == "draining" || m.state == "lost"))
            .map(|m| m.uuid.clone())
            .collect();
        if going.is_empty() {
            return;
        }
        // Only asked, nothing is changed: under no epoch.
        let Ok(client) = self.client().await else { return };
        let admin = client.admin();
        for uuid in going {
            match admin.describe_bookie(&uuid).await {
                Ok(needs) => {
                    let first: Vec<String> = needs
                        .needs
                        .iter()
                        .take(SHOWN)
                        .map(|n| format!("ledger {} of {}-{} ({})", n.ledger, n.topic, n.partition, n.why))
                        .collect();
                    // No number that counts down: status moves with what is needed, not with progress (rule 3).
                    let text = match first.as_slice() {
                        [] => "nothing needs it any more".to_owned(),
                        some => format!(
                            "still needed by {}{}",
                            some.join(", "),
                            if needs.needs.len() > SHOWN { " and more" } else { "" }
                        ),
                    };
                    observed.needs.insert(uuid, text);
                }
                Err(e) => tracing::debug!(uuid, error = %e, "what needs the bookie is not known"),
            }
        }
    }
}

/// For a condition: the code alone, as the rest differs from try to try (rule 3).
pub(crate) fn no_answer(e: &ClientError) -> String {
    match e.code {
        Some(code) => format!("the Cluster does not answer ({code})"),
        None => "the Cluster does not answer".to_owned(),
    }
}

/// Ledgers that a condition names.
const SHOWN: usize = 5;
