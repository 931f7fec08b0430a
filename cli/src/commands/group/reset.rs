//! `group reset`, and the second half of `group import`.

use serde_json::json;
use tidemill_client::{Client, ResetTo, Start};

use crate::{
    commands::{
        Output,
        connect::failed,
        table::{self, Row},
    },
    error::CliError,
    output,
};

pub(super) fn target(to: Start) -> ResetTo {
    match to {
        Start::Earliest => ResetTo::Earliest,
        Start::Latest => ResetTo::Latest,
        Start::Offset(n) => ResetTo::Offset(n),
        Start::Timestamp(ms) => ResetTo::Timestamp(ms),
    }
}

pub(super) async fn run(
    client: &Client,
    name: &str,
    topics: &[String],
    partitions: &[u32],
    to: &ResetTo,
    (execute, form): (bool, Output),
) -> Result<(), CliError> {
    let done = client.groups().reset(name, topics, partitions, to, execute).await.map_err(|e| failed(&e))?;
    let known = |n: i64| if n < 0 { "-".to_owned() } else { n.to_string() };
    let or_null = |n: i64| (n >= 0).then_some(n);
    let rows = done
        .changes
        .iter()
        .map(|c| Row {
            name: format!("{}/{}", c.topic, c.partition),
            columns: vec![c.topic.clone(), c.partition.to_string(), known(c.from), known(c.to)],
            wide: Vec::new(),
            json: json!({
                "topic": c.topic, "partition": c.partition, "from": or_null(c.from), "to": or_null(c.to),
                "executed": done.executed,
            }),
        })
        .collect();
    table::print(form, &["TOPIC", "PARTITION", "FROM", "TO"], &[], rows)?;
    if !done.executed {
        output::note("this is a plan; --execute carries it out");
    }
    Ok(())
}
