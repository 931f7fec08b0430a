//! Where key compaction of a topic stands: asked of the owners of its partitions.

use futures::future::join_all;
use serde_json::{Value, json};
use tidemill_client::{Client, v1};

use crate::commands::table;

/// Owners that are asked at once.
const AT_ONCE: usize = 16;
/// Partitions of which it is shown; of more the rest is left out, which the output says.
const MOST: usize = 256;

/// A partition with what its owner told; nothing when none answered.
pub(super) type Row = (u32, Option<v1::Compaction>);

/// Empty for a topic that is not compacted.
pub(super) async fn of(client: &Client, topic: &v1::Topic) -> Vec<Row> {
    if !topic.config.get("cleanup.policy").is_some_and(|p| p.contains("compact")) {
        return Vec::new();
    }
    let admin = client.admin();
    let mut rows = Vec::new();
    let indexes: Vec<u32> = topic.partitions.iter().take(MOST).map(|p| p.index).collect();
    for some in indexes.chunks(AT_ONCE) {
        let told = join_all(some.iter().map(|index| admin.describe_partition(&topic.name, *index))).await;
        rows.extend(some.iter().zip(told).map(|(index, t)| (*index, t.ok().and_then(|t| t.compaction))));
    }
    rows
}

fn share(c: &v1::Compaction) -> String {
    c.dirty_permille.map_or_else(|| "not known yet".to_owned(), |p| format!("{}.{} %", p / 10, p % 10))
}

pub(super) fn text(rows: Vec<Row>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let more = if rows.len() == MOST { "\n(the first 256 partitions)\n" } else { "" };
    let cells = rows
        .into_iter()
        .map(|(index, told)| match told {
            None => vec![index.to_string(), "-".into(), "-".into(), "-".into(), "-".into()],
            Some(c) => vec![
                index.to_string(),
                share(&c),
                c.clean_to.to_string(),
                c.progress_percent.map_or_else(|| "-".to_owned(), |p| format!("{p} %")),
                format!("{} ({} failed)", c.passes, c.failed),
            ],
        })
        .collect();
    let head = ["PARTITION", "DIRTY", "CLEAN TO", "RUNNING", "PASSES"];
    format!("\n\n{}{more}", table::columns(&head, cells))
}

pub(super) fn json(rows: &[Row]) -> Value {
    let all = rows.iter().map(|(index, told)| match told {
        None => json!({ "partition": index }),
        Some(c) => json!({
            "partition": index,
            "dirtyPermille": c.dirty_permille,
            "cleanTo": c.clean_to,
            "progressPercent": c.progress_percent,
            "passes": c.passes,
            "failed": c.failed,
        }),
    });
    Value::Array(all.collect())
}
