//! Groups as an operator sees them.

use tidemill_proto::v1::{self, reset_offsets_request::To};

use super::{CommittedPosition, offsets};
use crate::{Client, ClientError, TopicPartition, epoch::Epoch};

/// Administration of groups. Each operation retries what can succeed later, within the client's deadline.
#[derive(Clone, Debug)]
pub struct Groups {
    client: Client,
    epoch: Epoch,
}

/// Where committed offsets are moved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetTo {
    /// The log start.
    Earliest,
    /// Behind the last record.
    Latest,
    /// This offset, within each partition.
    Offset(i64),
    /// The first record whose timestamp is at or after this, ms since the Unix epoch.
    Timestamp(i64),
    /// Exactly these; one outside of its partition is refused.
    Exact(Vec<(TopicPartition, i64, String)>),
    /// Forgotten.
    Remove,
}

impl ResetTo {
    fn to_proto(&self) -> To {
        match self {
            Self::Earliest => To::Earliest(true),
            Self::Latest => To::Latest(true),
            Self::Offset(n) => To::Offset(*n),
            Self::Timestamp(ms) => To::TimestampMs(*ms),
            Self::Remove => To::Remove(true),
            Self::Exact(all) => To::Exact(v1::ExactOffsets {
                offsets: all
                    .iter()
                    .map(|(p, offset, metadata)| v1::OffsetToCommit {
                        topic: p.topic.to_string(),
                        partition: p.partition,
                        offset: *offset,
                        metadata: metadata.clone(),
                        ..v1::OffsetToCommit::default()
                    })
                    .collect(),
            }),
        }
    }
}

impl Groups {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, epoch: Epoch::default() }
    }

    /// The same with an operator epoch, which calls that change something carry from now on: they are refused with
    /// `STALE_OPERATOR_EPOCH` once another operator has acquired a later one.
    #[must_use]
    pub fn with_operator_epoch(mut self, epoch: u64) -> Self {
        self.epoch = Epoch(Some(epoch));
        self
    }

    /// All groups, and the partitions of the offsets topic whose coordinators did not answer.
    ///
    /// # Errors
    /// No answer within the deadline.
    pub async fn list(&self) -> Result<v1::ListGroupsResponse, ClientError> {
        self.client
            .call_any("list groups", |call| {
                let request = call.request(v1::ListGroupsRequest {});
                async move { call.groups().list_groups(request).await }
            })
            .await
    }

    /// Members, assignments, committed offsets, lag.
    ///
    /// # Errors
    /// `UNKNOWN_GROUP`, or no answer within the deadline.
    pub async fn describe(&self, group: &str) -> Result<v1::DescribeGroupResponse, ClientError> {
        self.client
            .call_coordinator(group, &format!("describe group {group}"), |call| {
                let request = call.request(v1::DescribeGroupRequest { group: group.to_owned() });
                async move { call.groups().describe_group(request).await }
            })
            .await
    }

    /// Committed positions: of these partitions, or all.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, `UNKNOWN_PARTITION`, or no answer within the deadline.
    pub async fn committed(
        &self,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<Vec<CommittedPosition>, ClientError> {
        let parts: Vec<(TopicPartition, u64)> = partitions.iter().map(|p| (p.clone(), 0)).collect();
        offsets::fetch(&self.client, group, None, &parts).await
    }

    /// Moves committed offsets of a group without members: of these topics (and partitions of them), or of everything that
    /// it has committed. Without `execute` the answer is the plan.
    ///
    /// # Errors
    /// `GROUP_NOT_EMPTY`, `UNKNOWN_GROUP` (nothing to be moved), `UNKNOWN_TOPIC`, `UNKNOWN_PARTITION`,
    /// `OFFSET_OUT_OF_RANGE`, or no answer within the deadline.
    pub async fn reset(
        &self,
        group: &str,
        topics: &[String],
        partitions: &[u32],
        to: &ResetTo,
        execute: bool,
    ) -> Result<v1::ResetOffsetsResponse, ClientError> {
        let request = v1::ResetOffsetsRequest {
            group: group.to_owned(),
            topics: topics.to_vec(),
            partitions: partitions.to_vec(),
            execute,
            to: Some(to.to_proto()),
            ..v1::ResetOffsetsRequest::default()
        };
        self.send_reset(request).await
    }

    /// A declared reset of these topics, or of everything that is committed: carried out once for each id, however often it is
    /// asked for. `evict` removes the members first. `shown` says for people where it goes to.
    ///
    /// # Errors
    /// As [`Self::reset`]; `STALE_OPERATOR_EPOCH`.
    pub async fn reset_once(
        &self,
        group: &str,
        topics: &[String],
        to: &ResetTo,
        (id, shown): (&str, &str),
        evict: bool,
    ) -> Result<v1::ResetOffsetsResponse, ClientError> {
        let request = v1::ResetOffsetsRequest {
            group: group.to_owned(),
            topics: topics.to_vec(),
            execute: true,
            to: Some(to.to_proto()),
            once: Some(v1::ResetOnce { id: id.to_owned(), to: shown.to_owned() }),
            evict,
            ..v1::ResetOffsetsRequest::default()
        };
        self.send_reset(request).await
    }

    async fn send_reset(
        &self,
        request: v1::ResetOffsetsRequest,
    ) -> Result<v1::ResetOffsetsResponse, ClientError> {
        let group = request.group.clone();
        self.client
            .call_coordinator(&group, &format!("reset group {group}"), |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.groups().reset_offsets(request).await }
            })
            .await
    }

    /// Declares a group for an object.
    ///
    /// # Errors
    /// `GROUP_CLAIMED`, `INVALID_ARGUMENT`, `UNSUPPORTED` (queues), `STALE_OPERATOR_EPOCH`, or no answer within the deadline.
    pub async fn declare(
        &self,
        request: v1::DeclareGroupRequest,
    ) -> Result<v1::DeclareGroupResponse, ClientError> {
        let group = request.group.clone();
        self.client
            .call_coordinator(&group, &format!("declare group {group}"), |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.groups().declare_group(request).await }
            })
            .await
    }

    /// Ends a declaration, with or without the group.
    ///
    /// # Errors
    /// `GROUP_NOT_EMPTY`, `STALE_OPERATOR_EPOCH`, or no answer within the deadline.
    pub async fn release(
        &self,
        group: &str,
        claim_uid: &str,
        delete: bool,
    ) -> Result<v1::ReleaseGroupResponse, ClientError> {
        let request =
            v1::ReleaseGroupRequest { group: group.to_owned(), claim_uid: claim_uid.to_owned(), delete };
        self.client
            .call_coordinator(group, &format!("release group {group}"), |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.groups().release_group(request).await }
            })
            .await
    }

    /// Forgets a group without members and its committed offsets.
    ///
    /// # Errors
    /// `UNKNOWN_GROUP`, `GROUP_NOT_EMPTY`, `GROUP_CLAIMED`, or no answer within the deadline.
    pub async fn delete(&self, group: &str) -> Result<(), ClientError> {
        self.client
            .call_coordinator(group, &format!("delete group {group}"), |call| {
                let request = self.epoch.request(&call, v1::DeleteGroupRequest { group: group.to_owned() });
                async move { call.groups().delete_group(request).await }
            })
            .await
            .map(drop)
    }

    /// Sets the configuration of a group (`None` removes it), only at this version when one is named; answers the new one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, `UNSUPPORTED` (queues), `CONFLICT` (another version), `UNKNOWN_GROUP`, or no answer within the
    /// deadline.
    pub async fn configure(
        &self,
        group: &str,
        config: Option<v1::GroupConfig>,
        version: Option<u64>,
    ) -> Result<u64, ClientError> {
        let request = v1::ConfigureGroupRequest { group: group.to_owned(), config, version };
        self.client
            .call_any(&format!("configure group {group}"), |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.groups().configure_group(request).await }
            })
            .await
            .map(|r| r.version)
    }

    /// The configuration of a group with its version, if it has one.
    ///
    /// # Errors
    /// No answer within the deadline.
    pub async fn config(&self, group: &str) -> Result<Option<(v1::GroupConfig, u64)>, ClientError> {
        let answer = self
            .client
            .call_any(&format!("read the configuration of group {group}"), |call| {
                let request = call.request(v1::GetGroupConfigRequest { group: group.to_owned() });
                async move { call.groups().get_group_config(request).await }
            })
            .await?;
        Ok(answer.config.map(|c| (c, answer.version)))
    }
}
