//! Changing and inspecting a cluster.

use tidemill_proto::v1;
use tidemill_types::ErrorCode;

use crate::{Client, ClientError, epoch::Epoch};

/// Administration through any broker. Each operation retries what can succeed later, within the client's deadline.
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
    epoch: Epoch,
}

impl Admin {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, epoch: Epoch::default() }
    }

    /// The same under an operator epoch: every call is refused with `STALE_OPERATOR_EPOCH` once another operator has acquired
    /// a later one.
    #[must_use]
    pub fn with_operator_epoch(mut self, epoch: u64) -> Self {
        self.epoch = Epoch(Some(epoch));
        self
    }

    /// Creates a topic. Config keys: `copies`, `ackQuorum`, `retention.ms`, `retention.bytes`, `max.message.bytes`,
    /// `roll.bytes`, `roll.ms`. With `if_not_exists` a topic that exists with the same partitions and config is a
    /// success; so it is when a first try of this call may have created it and was repeated.
    ///
    /// # Errors
    /// `TOPIC_EXISTS`, `INVALID_TOPIC_NAME`, `INVALID_ARGUMENT`, `UNKNOWN_CONFIG_KEY`, or no success within the
    /// deadline.
    pub async fn create_topic(
        &self,
        name: &str,
        partitions: u32,
        config: impl IntoIterator<Item = (String, String)>,
        if_not_exists: bool,
    ) -> Result<v1::Topic, ClientError> {
        let request = v1::CreateTopicRequest {
            name: name.to_owned(),
            partitions,
            config: config.into_iter().collect(),
            if_not_exists,
        };
        let what = format!("create topic {name}");
        let answer = self
            .client
            .call_any(&what, |call| {
                let mut body = request.clone();
                body.if_not_exists |= call.repeated;
                let request = self.epoch.request(&call, body);
                async move { call.admin().create_topic(request).await }
            })
            .await?;
        self.topic(&what, answer.topic)
    }

    /// Raises the number of partitions (0 = unchanged) and changes config keys (an empty value resets one).
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, `INVALID_ARGUMENT`, `UNKNOWN_CONFIG_KEY`, or no success within the deadline.
    pub async fn alter_topic(
        &self,
        name: &str,
        partitions: u32,
        config: impl IntoIterator<Item = (String, String)>,
    ) -> Result<v1::Topic, ClientError> {
        let request =
            v1::AlterTopicRequest { name: name.to_owned(), partitions, config: config.into_iter().collect() };
        let what = format!("alter topic {name}");
        let answer = self
            .client
            .call_any(&what, |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.admin().alter_topic(request).await }
            })
            .await?;
        self.topic(&what, answer.topic)
    }

    /// Deletes a topic with its records.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC` (not when an earlier try of this call may have deleted it), or no success within the deadline.
    pub async fn delete_topic(&self, name: &str) -> Result<(), ClientError> {
        let repeated = std::sync::atomic::AtomicBool::new(false);
        let done = self
            .client
            .call_any(&format!("delete topic {name}"), |call| {
                repeated.store(call.repeated, std::sync::atomic::Ordering::Relaxed);
                let request = self.epoch.request(&call, v1::DeleteTopicRequest { name: name.to_owned() });
                async move { call.admin().delete_topic(request).await }
            })
            .await;
        self.client.inner.topology.forget(name);
        match done {
            Err(e)
                if e.code == Some(ErrorCode::UnknownTopic)
                    && repeated.load(std::sync::atomic::Ordering::Relaxed) =>
            {
                Ok(())
            }
            other => other.map(|_| ()),
        }
    }

    /// Topics (all when none is named), partitions, owners and brokers.
    ///
    /// # Errors
    /// No answer within the deadline. Names that do not exist stand in the answer's `unknown`.
    pub async fn describe(
        &self,
        topics: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<v1::DescribeResponse, ClientError> {
        self.client.describe_raw("describe", topics.into_iter().map(Into::into).collect()).await
    }

    /// Deletes the records of a partition below `before` (`None`: all that are acknowledged): its log start moves there. Again
    /// with the same offset it is a success. Returns log start and high watermark afterwards.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, `UNKNOWN_PARTITION`, `OFFSET_OUT_OF_RANGE` beyond the end, or no success within the deadline.
    pub async fn delete_records(
        &self,
        topic: &str,
        partition: u32,
        before: Option<i64>,
    ) -> Result<v1::DeleteRecordsResponse, ClientError> {
        let request =
            v1::DeleteRecordsRequest { topic: topic.to_owned(), partition, before: before.unwrap_or(-1) };
        self.client
            .call_any(&format!("delete records of {topic}/{partition}"), |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.admin().delete_records(request).await }
            })
            .await
    }

    /// Members, quorum, counts.
    ///
    /// # Errors
    /// No answer within the deadline.
    pub async fn cluster_status(&self) -> Result<v1::ClusterStatusResponse, ClientError> {
        self.client
            .call_any("cluster status", |call| {
                let request = self.epoch.request(&call, v1::ClusterStatusRequest {});
                async move { call.admin().cluster_status(request).await }
            })
            .await
    }

    /// One page of ledgers in order of id; `after` of the next page is the last id of this one.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, `UNKNOWN_PARTITION`, `UNKNOWN_LEDGER`, or no answer within the deadline.
    pub async fn list_ledgers(
        &self,
        request: v1::ListLedgersRequest,
    ) -> Result<v1::ListLedgersResponse, ClientError> {
        self.client
            .call_any("list ledgers", |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.admin().list_ledgers(request).await }
            })
            .await
    }

    /// Owner, state and chain of a partition.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC`, `UNKNOWN_PARTITION`, or no answer within the deadline.
    pub async fn describe_partition(
        &self,
        topic: &str,
        partition: u32,
    ) -> Result<v1::DescribePartitionResponse, ClientError> {
        self.client
            .call_any(&format!("describe partition {topic}/{partition}"), |call| {
                let request = self
                    .epoch
                    .request(&call, v1::DescribePartitionRequest { topic: topic.to_owned(), partition });
                async move { call.admin().describe_partition(request).await }
            })
            .await
    }

    /// Wishes that a bookie (uuid or name) be emptied, or takes the wish back; answers at once.
    ///
    /// # Errors
    /// `UNKNOWN_BOOKIE`, `WRONG_STATE` (such as too few writable bookies without it), or no answer within the deadline.
    pub async fn drain_bookie(&self, bookie: &str, undo: bool) -> Result<v1::BookieNeeds, ClientError> {
        let request = v1::DrainBookieRequest { bookie: bookie.to_owned(), undo };
        let what = format!("drain bookie {bookie}");
        let answer = self
            .client
            .call_any(&what, |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.admin().drain_bookie(request).await }
            })
            .await?;
        needs(&what, answer.bookie)
    }

    /// Declares a bookie without a live session gone for good.
    ///
    /// # Errors
    /// `UNKNOWN_BOOKIE`, `WRONG_STATE` (it lives), or no answer within the deadline.
    pub async fn mark_bookie_lost(&self, uuid: &str) -> Result<v1::BookieNeeds, ClientError> {
        let request = v1::MarkBookieLostRequest { bookie: uuid.to_owned() };
        let what = format!("declare bookie {uuid} lost");
        let answer = self
            .client
            .call_any(&what, |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.admin().mark_bookie_lost(request).await }
            })
            .await?;
        needs(&what, answer.bookie)
    }

    /// Retires a draining or lost bookie for ever, if nothing needs it: true. False: what needs it stands in the answer.
    ///
    /// # Errors
    /// `UNKNOWN_BOOKIE`, `WRONG_STATE` (neither draining nor lost), or no answer within the deadline, which does not mean
    /// that it is retired.
    pub async fn retire_bookie(&self, uuid: &str) -> Result<(bool, v1::BookieNeeds), ClientError> {
        let request = v1::RetireBookieRequest { bookie: uuid.to_owned() };
        let what = format!("retire bookie {uuid}");
        let answer = self
            .client
            .call_any(&what, |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.admin().retire_bookie(request).await }
            })
            .await?;
        Ok((answer.retired, needs(&what, answer.bookie)?))
    }

    /// State of a bookie (uuid or name) and what still needs it.
    ///
    /// # Errors
    /// `UNKNOWN_BOOKIE`, or no answer within the deadline.
    pub async fn describe_bookie(&self, bookie: &str) -> Result<v1::BookieNeeds, ClientError> {
        let request = v1::DescribeBookieRequest { bookie: bookie.to_owned() };
        let what = format!("describe bookie {bookie}");
        let answer = self
            .client
            .call_any(&what, |call| {
                let request = self.epoch.request(&call, request.clone());
                async move { call.admin().describe_bookie(request).await }
            })
            .await?;
        needs(&what, answer.bookie)
    }

    /// Closes a ledger that recovery cannot decide, at the last provable entry. What cannot be proved is lost for good.
    ///
    /// # Errors
    /// `UNKNOWN_LEDGER`, `INVALID_ARGUMENT` without `accept_loss`, `WRONG_STATE` (a bookie may still come back), or no
    /// answer within the deadline.
    pub async fn force_close_ledger(
        &self,
        ledger: u64,
        accept_loss: bool,
    ) -> Result<v1::Ledger, ClientError> {
        let request = v1::ForceCloseLedgerRequest { ledger, accept_loss };
        let what = format!("force-close ledger {ledger}");
        let answer = self
            .client
            .call_any(&what, |call| {
                let request = self.epoch.request(&call, request);
                async move { call.admin().force_close_ledger(request).await }
            })
            .await?;
        answer
            .ledger
            .ok_or_else(|| ClientError::new(ErrorCode::Internal, format!("{what}: the answer has no ledger")))
    }

    fn topic(&self, what: &str, topic: Option<v1::Topic>) -> Result<v1::Topic, ClientError> {
        let topic = topic.ok_or_else(|| {
            ClientError::new(ErrorCode::Internal, format!("{what}: the answer has no topic"))
        })?;
        self.client.inner.topology.learn_topic(&topic);
        Ok(topic)
    }
}

fn needs(what: &str, bookie: Option<v1::BookieNeeds>) -> Result<v1::BookieNeeds, ClientError> {
    bookie.ok_or_else(|| ClientError::new(ErrorCode::Internal, format!("{what}: the answer has no bookie")))
}
