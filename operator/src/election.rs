//! Leader election on a Lease.
//!
//! Every change of the Lease carries the resourceVersion that was read, so two processes never both write it. A holder
//! that could not renew within two thirds of the duration gives up by itself, on its own monotonic clock, before anybody
//! else may take the Lease. The API server knows no fencing: what must be safe against a stale leader carries preconditions
//! and rests on one-way facts (rule 15).

use std::time::{Duration, Instant};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};

/// How long others wait after the last renewal that they saw.
const DURATION: Duration = Duration::from_secs(15);
/// Between two renewals or tries.
const PERIOD: Duration = Duration::from_secs(2);
/// Without a renewal for so long the holder gives up.
const GIVE_UP: Duration = Duration::from_secs(10);

/// A candidate for the lead.
#[derive(Debug)]
pub struct Election {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The last foreign record, and since when it is unchanged on this process's own clock: clocks are not compared.
    seen: Option<(String, Instant)>,
}

impl Election {
    /// A candidate.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity: identity.to_owned(),
            seen: None,
        }
    }

    /// Waits until this process leads. `say` is told why it waits.
    pub async fn wait(&mut self, say: impl Fn(&str)) {
        loop {
            match self.attempt().await {
                Ok(None) => return,
                Ok(Some(holder)) => say(&format!("{holder} leads")),
                Err(e) => say(&describe(&e)),
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Renews until the lead is lost; returns why.
    pub async fn hold(&mut self) -> String {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(PERIOD).await;
            let started = Instant::now();
            let left = GIVE_UP.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.attempt()).await {
                Ok(Ok(None)) => renewed = started,
                Ok(Ok(Some(holder))) => return format!("{holder} leads now"),
                Ok(Err(e)) => tracing::warn!(error = %describe(&e), "the lease was not renewed"),
                Err(_) => {}
            }
            if renewed.elapsed() >= GIVE_UP {
                return format!("the lease could not be renewed for {GIVE_UP:?}");
            }
        }
    }

    /// Gives the lead up, so that another one need not wait.
    pub async fn release(&mut self) {
        let Ok(Some(mut lease)) = self.api.get_opt(&self.name).await else { return };
        let Some(spec) = lease.spec.as_mut().filter(|s| s.holder_identity.as_ref() == Some(&self.identity))
        else {
            return;
        };
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        if let Err(e) = self.api.replace(&self.name, &PostParams::default(), &lease).await {
            tracing::debug!(error = %e, "the lease was not released");
        }
    }

    /// `None`: this process holds it now. Else who does.
    async fn attempt(&mut self) -> Result<Option<String>, kube::Error> {
        let Some(mut lease) = self.api.get_opt(&self.name).await? else {
            let mut lease = Lease { spec: Some(LeaseSpec::default()), ..Lease::default() };
            lease.metadata.name = Some(self.name.clone());
            self.take(&mut lease);
            return match self.api.create(&PostParams::default(), &lease).await {
                Ok(_) => Ok(None),
                Err(kube::Error::Api(s)) if s.code == 409 => Ok(Some("another process".to_owned())),
                Err(e) => Err(e),
            };
        };
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        let holder = spec.holder_identity.clone().filter(|h| !h.is_empty());
        if let Some(holder) = holder.filter(|h| *h != self.identity) {
            let record = format!("{holder} {:?}", spec.renew_time);
            let duration =
                Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(15)).unwrap_or(15));
            match &self.seen {
                Some((seen, since)) if *seen == record => {
                    if since.elapsed() < duration.max(DURATION) {
                        return Ok(Some(holder));
                    }
                }
                _ => {
                    self.seen = Some((record, Instant::now()));
                    return Ok(Some(holder));
                }
            }
        }
        self.take(&mut lease);
        // The resourceVersion in the object makes this conditional.
        match self.api.replace(&self.name, &PostParams::default(), &lease).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(s)) if s.code == 409 => Ok(Some("another process".to_owned())),
            Err(e) => Err(e),
        }
    }

    fn take(&self, lease: &mut Lease) {
        let now = MicroTime(Timestamp::now());
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0).saturating_add(1));
            spec.acquire_time = Some(now.clone());
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(DURATION.as_secs()).ok();
        spec.renew_time = Some(now);
    }
}

fn describe(e: &kube::Error) -> String {
    match e {
        kube::Error::Api(s) if s.code == 403 => format!("no right to use the lease: {}", s.message),
        kube::Error::Api(s) => s.message.clone(),
        other => other.to_string(),
    }
}
