//! Control commands, and the feature level.

use std::time::Duration;

use tidemill_proto::meta::{RaiseFeatureLevelRequest, raise_feature_level_response::Outcome};
use tidemill_types::{
    Revision,
    meta::{Answer, Command, ControlAnswer, ControlCommand, ControlQuery, ControlReply, Query, Reply},
};

use crate::{Applied, MetaClient, MetaError, operate::refusal, retry::Backoff};

/// All voters are asked one after the other in the worst case.
const RAISE_TIMEOUT: Duration = Duration::from_secs(20);

/// The feature level in force, and what could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureLevel {
    /// In force.
    pub level: u32,
    /// The highest that every voter knows; 0 = not all answered.
    pub highest: u32,
}

impl MetaClient {
    /// A control command under the current session.
    ///
    /// # Errors
    /// As [`MetaClient::propose`].
    pub async fn control(&self, command: ControlCommand) -> Applied<ControlReply> {
        match self.propose(Command::Control(command)).await? {
            Ok(Reply::Control(reply)) => Ok(Ok(reply)),
            Ok(other) => Err(MetaError::Malformed { why: format!("a reply of another kind: {other:?}") }),
            Err(rejection) => Ok(Err(rejection)),
        }
    }

    /// A control query; a linearizable read.
    ///
    /// # Errors
    /// As [`MetaClient::read`].
    pub async fn control_query(&self, query: ControlQuery) -> Result<(ControlAnswer, Revision), MetaError> {
        match self.read(&Query::Control(query)).await? {
            (Answer::Control(answer), revision) => Ok((answer, revision)),
            (other, _) => Err(MetaError::Malformed { why: format!("an answer of another kind: {other:?}") }),
        }
    }

    /// Raises the feature level, 0 = to the highest that every voter knows; with `dry_run` it only tells the levels.
    ///
    /// # Errors
    /// [`MetaError::Refused`] when a voter does not know the level; [`MetaError::Unavailable`] when not all voters answered;
    /// [`MetaError::OutcomeUnknown`].
    pub async fn raise_feature_level(&self, level: u32, dry_run: bool) -> Result<FeatureLevel, MetaError> {
        let quorum = &self.inner.quorum;
        let mut backoff = Backoff::new(self.inner.config.give_up_after);
        let mut sent = false;
        loop {
            let why = match quorum.leader_or_next() {
                None => "no member's address is known".to_owned(),
                Some(address) => match quorum.stub(&address).await {
                    Err(e) => {
                        quorum.failed(&address);
                        e.to_string()
                    }
                    Ok(mut stub) => {
                        let cluster = self.inner.cluster_bytes();
                        let request = RaiseFeatureLevelRequest { cluster, level, dry_run };
                        match tokio::time::timeout(RAISE_TIMEOUT, stub.raise_feature_level(request)).await {
                            Ok(Ok(answer)) => {
                                let answer = answer.into_inner();
                                match answer.outcome {
                                    Some(Outcome::Level(level)) => {
                                        return Ok(FeatureLevel { level, highest: answer.highest });
                                    }
                                    Some(Outcome::Leader(hint)) => {
                                        quorum.hint(&address, &hint);
                                        format!("{address} does not lead")
                                    }
                                    None => format!("{address}: an answer without content"),
                                }
                            }
                            Ok(Err(status)) => {
                                if let Some(e) = refusal(&status) {
                                    return Err(e);
                                }
                                sent = true;
                                quorum.failed(&address);
                                format!("{address}: {}", status.message())
                            }
                            Err(_) => {
                                sent = true;
                                quorum.failed(&address);
                                format!("{address}: no answer in time")
                            }
                        }
                    }
                },
            };
            if !backoff.pause().await {
                return Err(match sent && !dry_run {
                    true => MetaError::OutcomeUnknown { why },
                    false => MetaError::Unavailable { why },
                });
            }
        }
    }
}
