//! Asking again, one question on its way at a time.

use std::sync::Arc;

use tidemill_types::ErrorCode;

use super::{TopicFacts, Topology};
use crate::{Client, ClientError};

/// Most topics in one question.
const MAX_NAMES: usize = 1_000;

impl Topology {
    /// What is known of a topic, asked for when nothing is.
    pub(crate) async fn topic(&self, client: &Client, topic: &str) -> Result<TopicFacts, ClientError> {
        match self.facts(topic) {
            Some(facts) => Ok(facts),
            None => self.refresh(client, topic, 0).await,
        }
    }

    /// Knowledge newer than generation `seen`. Callers that come while a question is on its way share its answer or the
    /// next one, so that a failover of many partitions makes few questions.
    pub(crate) async fn refresh(
        &self,
        client: &Client,
        topic: &str,
        seen: u64,
    ) -> Result<TopicFacts, ClientError> {
        {
            let mut state = self.state.lock();
            if !state.wanted.iter().any(|w| **w == *topic) && state.wanted.len() < MAX_NAMES {
                state.wanted.push(Arc::from(topic));
            }
        }
        let _flight = self.flight.lock().await;
        if let Some(facts) = self.facts(topic).filter(|f| f.generation > seen) {
            return Ok(facts);
        }
        let mut names: Vec<String> =
            std::mem::take(&mut self.state.lock().wanted).iter().map(ToString::to_string).collect();
        if !names.iter().any(|n| n == topic) {
            names.push(topic.to_owned());
        }
        client.describe_raw(&format!("describe topic {topic}"), names).await?;
        self.facts(topic).ok_or_else(|| {
            ClientError::new(ErrorCode::UnknownTopic, format!("topic {topic}: no topic of this name"))
        })
    }
}
