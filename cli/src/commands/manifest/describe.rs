//! `describe`.

use tidemill_client::{Client, v1};

use super::{Kind, get, groups, show};
use crate::{
    commands::{connect::failed, table},
    error::CliError,
    output,
};

pub(super) async fn describe(
    client: &Client,
    kind: Kind,
    names: &[String],
    namespace: &str,
) -> Result<(), CliError> {
    if kind == Kind::ConsumerGroup {
        return groups::describe(client, names, namespace).await;
    }
    for (i, t) in get::topics(client, kind, names, namespace).await?.iter().enumerate() {
        let answer = client.admin().describe([t.name.clone()]).await.map_err(|e| failed(&e))?;
        let partitions = answer.topics.into_iter().next().map(|t| t.partitions).unwrap_or_default();
        let text = text(t, &partitions);
        output::print(&if i > 0 { format!("\n{text}") } else { text })?;
    }
    Ok(())
}

fn text(t: &v1::TopicState, partitions: &[v1::Partition]) -> String {
    let (namespace, name) = show::object_of(t);
    let (ready, reason) = show::ready(t);
    let mut lines = vec![
        ("Name", name),
        ("Namespace", namespace.unwrap_or_else(|| "-".to_owned())),
        ("Topic", format!("{} (id {})", t.name, t.id)),
        (
            "Claimed by",
            t.claim.as_ref().map_or_else(|| "nobody".to_owned(), |c| format!("{} (uid {})", c.owner, c.uid)),
        ),
        ("Ready", format!("{ready} ({reason})")),
        ("Partitions", t.partitions.to_string()),
        ("Created", show::time(t.created_ms)),
    ];
    if let Some(tombstone) = &t.tombstone {
        let by = tombstone.former.as_ref().map_or("nobody", |c| c.owner.as_str());
        lines.push(("Deleted", format!("{} by {by}", show::time(tombstone.deleted_ms))));
        lines.push(("Purge at", show::time(tombstone.purge_at_ms)));
    }
    let mut out: String = lines.into_iter().map(|(k, v)| format!("{:<12}{v}\n", format!("{k}:"))).collect();
    out.push_str("Config:\n");
    let mut config: Vec<_> = t.config.iter().collect();
    config.sort();
    for (k, v) in config {
        out.push_str(&format!("  {k}: {}\n", if v.is_empty() { "(none)" } else { v }));
    }
    out.push('\n');
    let rows = partitions
        .iter()
        .map(|p| vec![p.index.to_string(), p.epoch.to_string(), p.owner_name.clone(), p.owner.clone()])
        .collect();
    out.push_str(&table::columns(&["PARTITION", "EPOCH", "OWNER", "ADDRESS"], rows));
    out
}
