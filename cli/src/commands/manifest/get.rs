//! `get`.

use tidemill_client::{Client, v1};

use super::{Kind, groups, observe, show};
use crate::{
    commands::{
        Output,
        table::{self, Row},
    },
    error::CliError,
};

/// The topics that are named, or all.
pub(super) async fn topics(
    client: &Client,
    kind: Kind,
    names: &[String],
    namespace: &str,
) -> Result<Vec<v1::TopicState>, CliError> {
    let all = observe::all(client).await?;
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        all.iter()
            .find(|t| show::is_named(t, namespace, name))
            .cloned()
            .ok_or_else(|| show::not_found(kind, name))
    };
    names.iter().map(find).collect()
}

pub(super) async fn get(
    client: &Client,
    kind: Kind,
    names: &[String],
    namespace: &str,
    form: Output,
) -> Result<(), CliError> {
    if kind == Kind::ConsumerGroup {
        return groups::get(client, names, namespace, form).await;
    }
    let rows = topics(client, kind, names, namespace).await?.iter().map(row).collect();
    table::print(
        form,
        &["NAME", "READY", "REASON", "PARTITIONS", "COPIES"],
        &["TOPIC", "CLAIMED-BY", "PURGE-AT", "CONFIG"],
        rows,
    )
}

fn row(t: &v1::TopicState) -> Row {
    let (ready, reason) = show::ready(t);
    let name = show::object_name(t);
    let mut config: Vec<String> =
        t.config.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| format!("{k}={v}")).collect();
    config.sort();
    let key = |k: &str| t.config.get(k).cloned().unwrap_or_default();
    Row {
        name: format!("{}/{name}", Kind::Topic.full()),
        columns: vec![
            name,
            ready.to_owned(),
            reason.to_owned(),
            t.partitions.to_string(),
            format!("{}/{}", key("copies"), key("ackQuorum")),
        ],
        wide: vec![
            t.name.clone(),
            t.claim.as_ref().map_or_else(|| "-".to_owned(), |c| c.owner.clone()),
            t.tombstone.as_ref().map_or_else(|| "-".to_owned(), |t| show::time(t.purge_at_ms)),
            config.join(","),
        ],
        json: show::manifest(t),
    }
}
