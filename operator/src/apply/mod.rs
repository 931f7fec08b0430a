//! Carrying out a plan. Each action stands for itself: errors are collected, the rest goes on (rule 11).

mod child;
mod difference;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy},
};
use serde_json::{Value, json};
use tidemill_client::{ClientError, ErrorCode, v1};
use tidemill_types::{
    BookieState, ClusterId, MemberId, RequestId, SessionId,
    meta::{Command, Request},
};

use crate::{
    link::Link,
    names::{ANNOTATION_DRAINING, ANNOTATION_UUID, Names},
    observe::{Kind, Observed},
    plan::Action,
};

pub use difference::would_change;

/// Field manager of children.
pub const MANAGER_CHILDREN: &str = "tidemill-operator";
/// Field manager of notes on volume claims.
const MANAGER_NOTES: &str = "tidemill-operator-notes";
/// Field manager of the size of volume claims.
const MANAGER_SIZE: &str = "tidemill-operator-size";
/// Field manager of the wish to drain, noted on claims.
const MANAGER_DRAIN: &str = "tidemill-operator-drain";

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The API server denied a verb: only a change of the operator's rights helps.
    #[error("{what}: the operator has no right to do this: {why}")]
    Forbidden {
        /// What was tried.
        what: String,
        /// The server's words.
        why: String,
    },
    /// The API server judged the object invalid: trying again gives the same answer.
    #[error("{what}: refused by the API server: {why}")]
    Invalid {
        /// What was tried.
        what: String,
        /// The server's words.
        why: String,
    },
    /// May succeed later.
    #[error("{what}: {why}")]
    Transient {
        /// What was tried.
        what: String,
        /// Why it failed.
        why: String,
    },
}

impl ApplyError {
    fn kube(what: String, e: &kube::Error) -> Self {
        match e {
            kube::Error::Api(s) if s.code == 403 => Self::Forbidden { what, why: s.message.clone() },
            kube::Error::Api(s) if s.code == 422 => Self::Invalid { what, why: s.message.clone() },
            kube::Error::Api(s) => Self::Transient { what, why: s.message.clone() },
            other => Self::Transient { what, why: other.to_string() },
        }
    }
}

/// Where a plan is carried out.
pub struct Site<'a> {
    /// The API server.
    pub client: &'a Client,
    /// Names of the children.
    pub names: &'a Names,
    /// The data plane.
    pub link: &'a Arc<Link>,
    /// What was there when the plan was made.
    pub observed: &'a Observed,
}

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Names of the actions that changed something, with what they changed and why.
    pub done: Vec<(&'static str, String)>,
    /// What failed.
    pub errors: Vec<ApplyError>,
    /// A cluster id that was made just now.
    pub initialized: Option<String>,
}

impl Site<'_> {
    /// Carries out all actions.
    pub async fn run(&self, actions: Vec<Action>) -> Outcome {
        let mut out = Outcome::default();
        for action in actions {
            let name = action.name();
            let initialized = match &action {
                Action::Initialize { cluster, .. } => Some(cluster.clone()),
                _ => None,
            };
            match self.one(action).await {
                Ok(Some(what)) => {
                    tracing::info!(
                        cluster = self.names.cluster,
                        namespace = self.names.namespace,
                        "{name} {what}"
                    );
                    out.done.push((name, what));
                    out.initialized = out.initialized.or(initialized);
                }
                Ok(None) => {}
                Err(e) => {
                    tracing::warn!(cluster = self.names.cluster, namespace = self.names.namespace, error = %e, "{name} failed");
                    out.errors.push(e);
                }
            }
        }
        out
    }

    /// What was changed; `None` when nothing had to be.
    async fn one(&self, action: Action) -> Result<Option<String>, ApplyError> {
        match action {
            Action::Apply(child) => self.child(*child).await,
            Action::HoldSet { .. } => Ok(None),
            Action::Prune { kind, name, uid, version } => {
                let Some(kind) = Kind::of(&kind) else { return Ok(None) };
                self.delete(kind, &name, uid, version, PropagationPolicy::Background).await
            }
            Action::OrphanSet { name, uid, version } => {
                self.delete(STATEFUL_SET, &name, uid, version, PropagationPolicy::Orphan).await
            }
            Action::DeleteSet { name, uid, version } => {
                self.delete(STATEFUL_SET, &name, uid, version, PropagationPolicy::Background).await
            }
            Action::ScaleSet { name, version, replicas } => {
                let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"replicas": replicas}});
                let what = format!("StatefulSet {name} to {replicas}");
                self.dynamic(STATEFUL_SET)
                    .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                    .await
                    .map_err(|e| ApplyError::kube(what.clone(), &e))?;
                Ok(Some(what))
            }
            Action::DeletePod { name, uid, version, why, announce } => {
                if let Some(member) = announce {
                    self.announce(&name, member, false).await?;
                }
                let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.names.namespace);
                let what = format!("Pod {name}: {why}");
                gone(api.delete(&name, &precondition(uid, version, None)).await, what)
            }
            Action::DrainBroker { uuid, name, undo } => {
                let what = format!("{name} ({uuid})");
                let id: MemberId = uuid.parse().map_err(|_| transient(&what, &"no uuid"))?;
                let state = if undo { BookieState::Rw } else { BookieState::Draining };
                let meta = self.link.peers().meta();
                let command = Command::SetMemberState { member: id, state, restarting: false };
                // The operator is no member and has no session; the same state once more changes nothing.
                let request = Request { session: SessionId::NONE, request: RequestId(0), command };
                let answer = meta.propose_request(&request).await.map_err(|e| transient(&what, &e))?;
                answer.map_err(|why| transient(&what, &why))?;
                Ok(Some(what))
            }
            Action::CancelRestart { uuid, name } => {
                self.announce(&name, uuid.clone(), true).await?;
                Ok(Some(format!("{name} ({uuid})")))
            }
            Action::DeleteClaim { name, uid, version, uuid } => {
                let what = format!("PersistentVolumeClaim {name} of {uuid}");
                gone(self.claims().delete(&name, &precondition(uid, version, None)).await, what)
            }
            Action::NoteUuid { claim, uuid } => {
                let metadata = json!({"annotations": {ANNOTATION_UUID: uuid}});
                self.patch_claim(
                    &claim,
                    MANAGER_NOTES,
                    json!({"metadata": metadata}),
                    format!("{claim}: {uuid}"),
                )
                .await
            }
            Action::GrowClaim { claim, size } => {
                let spec = json!({"resources": {"requests": {"storage": size}}});
                self.patch_claim(&claim, MANAGER_SIZE, json!({"spec": spec}), format!("{claim} to {size}"))
                    .await
            }
            Action::Initialize { cluster, voters } => self.initialize(&cluster, &voters).await,
            Action::AddVoter { address } => {
                self.members(tidemill_meta_client::MemberChange::Add(address.clone()), address).await
            }
            Action::RemoveVoter { node, address } => {
                self.members(tidemill_meta_client::MemberChange::Remove(node), address).await
            }
            Action::Drain { uuid, pod, claim } => {
                // Noted first: a wish of a person is never taken back by the operator.
                let metadata = json!({"annotations": {ANNOTATION_DRAINING: uuid}});
                self.patch_claim(&claim, MANAGER_DRAIN, json!({"metadata": metadata}), claim.clone()).await?;
                let what = format!("{pod} ({uuid})");
                let admin = self.link.admin().await.map_err(|why| transient(&what, &why))?;
                admin.drain_bookie(&uuid, false).await.map_err(|e| self.refused(&what, &e))?;
                Ok(Some(what))
            }
            Action::Undrain { uuid, pod, claim } => {
                let what = format!("{pod} ({uuid})");
                let admin = self.link.admin().await.map_err(|why| transient(&what, &why))?;
                admin.drain_bookie(&uuid, true).await.map_err(|e| self.refused(&what, &e))?;
                self.patch_claim(&claim, MANAGER_DRAIN, json!({"metadata": {}}), claim.clone()).await?;
                Ok(Some(what))
            }
            Action::Retire { uuid, pod } => {
                let what = format!("{pod} ({uuid})");
                let admin = self.link.admin().await.map_err(|why| transient(&what, &why))?;
                let retired = admin.retire_bookie(&uuid).await.map_err(|e| self.refused(&what, &e));
                let (retired, _needs) = retired?;
                Ok(retired.then_some(what))
            }
        }
    }

    /// R28: writers and the auditor know that the bookie comes back.
    async fn announce(&self, pod: &str, member: String, cancel: bool) -> Result<(), ApplyError> {
        let control = self.link.control().await.map_err(|why| transient(pod, &why))?;
        let request = v1::AnnounceRestartRequest { member, cancel };
        control.announce_restart(request).await.map_err(|e| self.refused(pod, &e)).map(drop)
    }

    /// A call through a broker that failed.
    fn refused(&self, what: &str, e: &ClientError) -> ApplyError {
        if e.code == Some(ErrorCode::StaleOperatorEpoch) {
            self.link.forget_epoch();
        }
        transient(what, e)
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), &self.names.namespace)
    }

    fn dynamic(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.names.namespace, &kind.resource())
    }

    async fn delete(
        &self,
        kind: Kind,
        name: &str,
        uid: String,
        version: String,
        propagation: PropagationPolicy,
    ) -> Result<Option<String>, ApplyError> {
        let what = format!("{} {name}", kind.kind);
        let params = precondition(uid, version, Some(propagation));
        gone(self.dynamic(kind).delete(name, &params).await, what)
    }

    async fn patch_claim(
        &self,
        claim: &str,
        manager: &str,
        mut body: Value,
        what: String,
    ) -> Result<Option<String>, ApplyError> {
        if let Some(body) = body.as_object_mut() {
            body.insert("apiVersion".to_owned(), json!("v1"));
            body.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
        }
        let what = format!("PersistentVolumeClaim {what}");
        self.claims()
            .patch(claim, &PatchParams::apply(manager).force(), &Patch::Apply(body))
            .await
            .map_err(|e| ApplyError::kube(what.clone(), &e))?;
        Ok(Some(what))
    }

    async fn initialize(&self, cluster: &str, voters: &[String]) -> Result<Option<String>, ApplyError> {
        let what = format!("quorum of {}", self.names.cluster);
        let id: ClusterId = cluster.parse().map_err(|_| transient(&what, &"the drawn id is no uuid"))?;
        // Safe with two operators at once: the members refuse unless all of them are empty.
        self.link.peers().meta().initialize(id, voters).await.map_err(|e| transient(&what, &e))?;
        Ok(Some(format!("{what}: {cluster}")))
    }

    async fn members(
        &self,
        change: tidemill_meta_client::MemberChange,
        address: String,
    ) -> Result<Option<String>, ApplyError> {
        self.link.peers().meta().change_members(&change).await.map_err(|e| transient(&address, &e))?;
        Ok(Some(address))
    }
}

const STATEFUL_SET: Kind = Kind { group: "apps", version: "v1", kind: "StatefulSet", plural: "statefulsets" };

fn transient(what: &str, why: &dyn std::fmt::Display) -> ApplyError {
    ApplyError::Transient { what: what.to_owned(), why: why.to_string() }
}

/// uid and resourceVersion: an operator that stalled meanwhile deletes nothing that it has not seen (rule 10).
fn precondition(uid: String, version: String, propagation_policy: Option<PropagationPolicy>) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid), resource_version: Some(version) }),
        propagation_policy,
        ..DeleteParams::default()
    }
}

/// NotFound is success (rule 1).
fn gone<T>(result: Result<T, kube::Error>, what: String) -> Result<Option<String>, ApplyError> {
    match result {
        Ok(_) => Ok(Some(what)),
        Err(kube::Error::Api(s)) if s.code == 404 => Ok(None),
        Err(e) => Err(ApplyError::kube(what, &e)),
    }
}
