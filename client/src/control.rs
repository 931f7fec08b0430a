//! Declared wishes: what the operator and `tidemill apply` need of a cluster.

use tidemill_proto::v1;
use tidemill_types::ErrorCode;
use tonic::{Request, Streaming};

use crate::{Client, ClientError, epoch::Epoch};

/// The control service through any broker. Each call retries what can succeed later, within the client's deadline; all but
/// [`Self::acquire_operator_epoch`] may be repeated without harm.
#[derive(Clone, Debug)]
pub struct Control {
    client: Client,
    epoch: Epoch,
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($request:ident) -> $response:ident = $what:literal;)*) => {
        impl Control {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// `STALE_OPERATOR_EPOCH` when another operator acquired the epoch; what the call's own page says; or no
                /// success within the deadline.
                pub async fn $name(&self, request: v1::$request) -> Result<v1::$response, ClientError> {
                    self.client
                        .call_any($what, |call| {
                            let request = self.epoch.request(&call, request.clone());
                            async move { call.control().$name(request).await }
                        })
                        .await
                }
            )*
        }
    };
}

calls! {
    /// Makes topics be as wished; one result per wish, in their order.
    apply_topics(ApplyTopicsRequest) -> ApplyTopicsResponse = "apply topics";
    /// Turns topics into tombstones; one result per deletion, in their order.
    delete_topics(DeleteTopicsRequest) -> DeleteTopicsResponse = "delete topics";
    /// Removes a tombstone and its data now.
    purge_topic(PurgeTopicRequest) -> PurgeTopicResponse = "purge topic";
    /// Frees claims, touches no data.
    release_claims(ReleaseClaimsRequest) -> ReleaseClaimsResponse = "release claims";
    /// One page of topics, tombstones included.
    list_topics(ListTopicsRequest) -> ListTopicsResponse = "list topics";
    /// Members of the metadata quorum as each of them says of itself.
    quorum_status(QuorumStatusRequest) -> QuorumStatusResponse = "quorum status";
    /// Adds, removes or readdresses one member of the quorum. A new voter first gets the log: give it a minute.
    change_quorum(ChangeQuorumRequest) -> ChangeQuorumResponse = "change the quorum";
    /// Announces a bookie's restart (R28).
    announce_restart(AnnounceRestartRequest) -> AnnounceRestartResponse = "announce a restart";
    /// What speaks against restarting or removing a member now.
    check_member(CheckMemberRequest) -> CheckMemberResponse = "check a member";
    /// The feature level.
    get_feature_level(GetFeatureLevelRequest) -> GetFeatureLevelResponse = "get the feature level";
    /// Raises the feature level.
    raise_feature_level(RaiseFeatureLevelRequest) -> RaiseFeatureLevelResponse = "raise the feature level";
    /// The current operator epoch.
    get_operator_epoch(GetOperatorEpochRequest) -> GetOperatorEpochResponse = "get the operator epoch";
}

impl Control {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, epoch: Epoch::default() }
    }

    /// The same with an epoch that every call carries from now on: a call is refused with `STALE_OPERATOR_EPOCH` once
    /// another operator has acquired a later one.
    #[must_use]
    pub fn with_operator_epoch(mut self, epoch: u64) -> Self {
        self.epoch = Epoch(Some(epoch));
        self
    }

    /// The epoch that calls carry.
    #[must_use]
    pub fn operator_epoch(&self) -> Option<u64> {
        self.epoch.0
    }

    /// Raises the operator epoch and returns the new one. A try whose outcome is unknown is repeated: then one epoch is
    /// skipped, which harms nobody.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, or no success within the deadline.
    pub async fn acquire_operator_epoch(&self, holder: &str) -> Result<u64, ClientError> {
        let answer = self
            .client
            .call_any("acquire the operator epoch", |call| {
                let request = call.request(v1::AcquireOperatorEpochRequest { holder: holder.to_owned() });
                async move { call.control().acquire_operator_epoch(request).await }
            })
            .await?;
        Ok(answer.epoch)
    }

    /// Every change of topics after a revision, in order; 0 begins with a reload. The stream has no deadline; when it breaks,
    /// call again with the revision of the last event.
    ///
    /// # Errors
    /// No broker answered within the deadline.
    pub async fn watch_topics(&self, from_revision: u64) -> Result<TopicEvents, ClientError> {
        let stream = self
            .client
            .call_any("watch topics", |call| {
                let request = self.epoch.mark(Request::new(v1::WatchTopicsRequest { from_revision }));
                async move { call.control().watch_topics(request).await }
            })
            .await?;
        Ok(TopicEvents { stream })
    }
}

/// Receives changes of topics.
#[derive(Debug)]
pub struct TopicEvents {
    stream: Streaming<v1::TopicEvent>,
}

impl TopicEvents {
    /// The next event; `None` when the broker ended the stream: watch again, at any broker.
    ///
    /// # Errors
    /// The stream broke: watch again from the last event's revision.
    pub async fn next(&mut self) -> Result<Option<v1::TopicEvent>, ClientError> {
        match self.stream.message().await {
            Ok(Some(event)) if event.event.is_none() => {
                Err(ClientError::new(ErrorCode::Internal, "watch topics: an event without content"))
            }
            Ok(event) => Ok(event),
            Err(status) => Err(ClientError::from_status("watch topics", &status)),
        }
    }
}
