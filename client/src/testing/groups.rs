//! A coordinator that gives what a test says, and notes what members say.

use std::{pin::Pin, sync::Arc};

use futures::Stream;
use parking_lot::Mutex;
use tidemill_proto::{
    convert::{Details, status},
    v1::{self, subscribe_request::Request as Said},
};
use tidemill_types::ErrorCode;
use tokio::sync::{Notify, mpsc};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use super::Broker;

type Answer<T> = Result<Response<T>, Status>;

/// What the coordinator gives, and what it heard.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// The broker that coordinates.
    pub(crate) coordinator: usize,
    /// Partitions of "t" that the member gets, and that it has to give up.
    pub(crate) assigned: Vec<u32>,
    pub(crate) revoking: Vec<u32>,
    pub(crate) revision: u64,
    pub(crate) epoch: u64,
    pub(crate) session_ms: u32,
    /// The next joins and heartbeats are answered so.
    pub(crate) refuse: std::collections::VecDeque<ErrorCode>,
    /// Nothing is answered.
    pub(crate) silent: bool,
    pub(crate) joins: Vec<v1::JoinGroupRequest>,
    pub(crate) beats: Vec<v1::HeartbeatRequest>,
    pub(crate) left: Vec<v1::LeaveGroupRequest>,
    pub(crate) committed: std::collections::BTreeMap<u32, i64>,
    /// Commits that are refused as fenced.
    pub(crate) fenced: bool,
}

impl Group {
    /// Gives these partitions from now on.
    pub(crate) fn give(&mut self, assigned: &[u32], revoking: &[u32]) {
        (self.assigned, self.revoking) = (assigned.to_vec(), revoking.to_vec());
        self.revision += 1;
    }

    fn assignment(&self, member: &str) -> v1::GroupAssignment {
        let each = |of: &[u32]| {
            of.iter()
                .map(|p| v1::AssignedPartition {
                    topic: "t".into(),
                    topic_id: 1,
                    partition: *p,
                    epoch: self.epoch,
                })
                .collect()
        };
        v1::GroupAssignment {
            group: "g".into(),
            member: member.into(),
            epoch: self.epoch,
            revision: self.revision,
            assigned: each(&self.assigned),
            revoking: each(&self.revoking),
            heartbeat_interval_ms: 10,
            session_timeout_ms: self.session_ms,
            rebalance_timeout_ms: 60_000,
            start_at: None,
        }
    }

    fn hear(&mut self, said: Said) -> Option<Result<v1::GroupAssignment, Status>> {
        let member = match &said {
            Said::Join(j) => j.member.clone(),
            Said::Heartbeat(h) => h.member.clone(),
            Said::Leave(l) => l.member.clone(),
        };
        let joins = matches!(said, Said::Join(_));
        match said {
            Said::Join(j) => self.joins.push(j),
            Said::Heartbeat(h) => {
                // What was given up is free.
                let owned = h.owned.clone().unwrap_or_default().partitions;
                let before = self.revoking.len();
                self.revoking.retain(|p| owned.iter().any(|o| o.partition == *p));
                self.revision += u64::from(before != self.revoking.len());
                self.beats.push(h);
            }
            Said::Leave(l) => self.left.push(l),
        }
        if self.silent {
            return None;
        }
        if let Some(code) = self.refuse.pop_front() {
            return Some(Err(refusal(code)));
        }
        if joins {
            self.epoch += 1;
            self.revision += 1;
        }
        Some(Ok(self.assignment(&member)))
    }
}

fn refusal(code: ErrorCode) -> Status {
    status(code, "test", Details::default())
}

fn unsupported<T>() -> Answer<T> {
    Err(refusal(ErrorCode::Unsupported))
}

/// The group "g", shared by all brokers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) group: Arc<Mutex<Group>>,
    pub(crate) heard: Arc<Notify>,
}

#[tonic::async_trait]
impl v1::groups_server::Groups for Broker {
    type SubscribeStream = Pin<Box<dyn Stream<Item = Result<v1::SubscribeResponse, Status>> + Send>>;

    async fn find_coordinator(
        &self,
        _: Request<v1::FindCoordinatorRequest>,
    ) -> Answer<v1::FindCoordinatorResponse> {
        let coordinator = self.groups.group.lock().coordinator;
        let address = self.world.lock().addresses[coordinator].clone();
        Ok(Response::new(v1::FindCoordinatorResponse { address, ..Default::default() }))
    }

    async fn subscribe(&self, r: Request<Streaming<v1::SubscribeRequest>>) -> Answer<Self::SubscribeStream> {
        if self.groups.group.lock().coordinator != self.me {
            return Err(refusal(ErrorCode::NotOwner));
        }
        let (tx, rx) = mpsc::channel(8);
        let (mut said, shared) = (r.into_inner(), self.groups.clone());
        tokio::spawn(async move {
            while let Some(Ok(request)) = said.next().await {
                let answer = request.request.and_then(|s| shared.group.lock().hear(s));
                shared.heard.notify_waiters();
                let Some(answer) = answer else { continue };
                let failed = answer.is_err();
                let answer = answer.map(|a| v1::SubscribeResponse { assignment: Some(a) });
                if tx.send(answer).await.is_err() || failed {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(rx))))
    }

    async fn leave_group(&self, r: Request<v1::LeaveGroupRequest>) -> Answer<v1::LeaveGroupResponse> {
        self.groups.group.lock().left.push(r.into_inner());
        self.groups.heard.notify_waiters();
        Ok(Response::new(v1::LeaveGroupResponse {}))
    }

    async fn commit_offsets(
        &self,
        r: Request<v1::CommitOffsetsRequest>,
    ) -> Answer<v1::CommitOffsetsResponse> {
        let mut g = self.groups.group.lock();
        if g.fenced {
            return Err(refusal(ErrorCode::FencedMember));
        }
        let results = r.into_inner().offsets.into_iter().map(|o| {
            g.committed.insert(o.partition, o.offset);
            v1::CommittedResult { topic: o.topic, partition: o.partition, error: None }
        });
        Ok(Response::new(v1::CommitOffsetsResponse { results: results.collect() }))
    }

    async fn fetch_offsets(&self, r: Request<v1::FetchOffsetsRequest>) -> Answer<v1::FetchOffsetsResponse> {
        let g = self.groups.group.lock();
        let offsets = r.into_inner().partitions.into_iter().map(|p| v1::CommittedOffset {
            offset: g.committed.get(&p.partition).copied().unwrap_or(-1),
            topic: p.topic,
            partition: p.partition,
            topic_id: p.topic_id,
            ..Default::default()
        });
        Ok(Response::new(v1::FetchOffsetsResponse { offsets: offsets.collect() }))
    }

    async fn join_group(&self, _: Request<v1::JoinGroupRequest>) -> Answer<v1::GroupAssignment> {
        unsupported()
    }

    async fn heartbeat(&self, _: Request<v1::HeartbeatRequest>) -> Answer<v1::GroupAssignment> {
        unsupported()
    }

    async fn list_groups(&self, _: Request<v1::ListGroupsRequest>) -> Answer<v1::ListGroupsResponse> {
        unsupported()
    }

    async fn describe_group(
        &self,
        _: Request<v1::DescribeGroupRequest>,
    ) -> Answer<v1::DescribeGroupResponse> {
        unsupported()
    }

    async fn reset_offsets(&self, _: Request<v1::ResetOffsetsRequest>) -> Answer<v1::ResetOffsetsResponse> {
        unsupported()
    }

    async fn delete_group(&self, _: Request<v1::DeleteGroupRequest>) -> Answer<v1::DeleteGroupResponse> {
        unsupported()
    }

    async fn configure_group(
        &self,
        _: Request<v1::ConfigureGroupRequest>,
    ) -> Answer<v1::ConfigureGroupResponse> {
        unsupported()
    }

    async fn get_group_config(
        &self,
        _: Request<v1::GetGroupConfigRequest>,
    ) -> Answer<v1::GetGroupConfigResponse> {
        unsupported()
    }

    async fn declare_group(&self, _: Request<v1::DeclareGroupRequest>) -> Answer<v1::DeclareGroupResponse> {
        unsupported()
    }

    async fn release_group(&self, _: Request<v1::ReleaseGroupRequest>) -> Answer<v1::ReleaseGroupResponse> {
        unsupported()
    }
}
