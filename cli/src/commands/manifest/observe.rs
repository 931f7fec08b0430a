//! What the cluster has of the topics that manifests name.

use std::collections::HashMap;

use tidemill_client::{Client, v1};
use tidemill_crd::{plan::TopicObserved, wire};

use crate::{commands::connect::failed, error::CliError};

/// Names of one question.
const NAMES: usize = 1_000;
/// Topics of one page.
const PAGE: u32 = 1_000;

/// Topics by name, and what the cluster does with keys that a topic does not set.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) topics: HashMap<String, v1::TopicState>,
    page: v1::ListTopicsResponse,
}

/// The named topics.
pub(super) async fn named(client: &Client, names: Vec<String>) -> Result<Observed, CliError> {
    let mut out = Observed::default();
    for some in names.chunks(NAMES) {
        let request = v1::ListTopicsRequest { names: some.to_vec(), ..v1::ListTopicsRequest::default() };
        out.add(client.control().list_topics(request).await.map_err(|e| failed(&e))?);
    }
    Ok(out)
}

/// All topics in order of name, tombstones included.
pub(super) async fn all(client: &Client) -> Result<Vec<v1::TopicState>, CliError> {
    let mut out = Observed::default();
    let mut after = 0;
    loop {
        let request = v1::ListTopicsRequest { after, limit: PAGE, ..v1::ListTopicsRequest::default() };
        let page = client.control().list_topics(request).await.map_err(|e| failed(&e))?;
        after = page.next_after;
        out.add(page);
        if after == 0 {
            break;
        }
    }
    let mut topics: Vec<_> = out.topics.into_values().collect();
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(topics)
}

impl Observed {
    fn add(&mut self, mut page: v1::ListTopicsResponse) {
        self.topics.extend(page.topics.drain(..).map(|t| (t.name.clone(), t)));
        self.page = page;
    }

    /// What the plan of one topic needs.
    pub(super) fn of(&self, topic: &str) -> TopicObserved {
        wire::topic::observed(self.topics.get(topic), &self.page)
    }
}
