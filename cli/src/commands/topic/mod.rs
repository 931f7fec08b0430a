//! `tidemill topic`.

mod compaction;

use clap::{Args, Subcommand};
use serde_json::json;
use tidemill_client::{At, Client, OffsetQuery, Start, v1};

use super::{
    Output,
    connect::{self, failed},
    consume::from,
    table::{self, Row},
};
use crate::{args::Global, error::CliError};

/// Below `tidemill topic`.
#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Create a topic.
    Create {
        /// 1 to 249 characters of a-z, A-Z, 0-9, '.', '_', '-'.
        name: String,
        /// Number of partitions; it can grow, never shrink.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        partitions: u32,
        #[command(flatten)]
        config: ConfigArgs,
        /// Success when it exists with the same partitions and configuration.
        #[arg(long)]
        if_not_exists: bool,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// List topics.
    List {
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// Show a topic with its partitions and owners.
    Describe {
        /// The topic.
        name: String,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// Grow a topic or change its configuration.
    Alter {
        /// The topic.
        name: String,
        /// New number of partitions, at least the present one.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        partitions: Option<u32>,
        #[command(flatten)]
        config: ConfigArgs,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// Delete the oldest records of a topic: they are gone for every reader, and for ever.
    Truncate {
        /// The topic.
        name: String,
        /// Records below this go: an OFFSET, @TIMESTAMP (ms since 1970 or RFC 3339), or `latest` for all.
        #[arg(long, value_name = "OFFSET|@TIMESTAMP|latest", value_parser = from::parse)]
        before: from::From,
        /// Only these partitions; an OFFSET needs one. Repeatable, or comma-separated.
        #[arg(long, value_name = "N", value_delimiter = ',')]
        partition: Vec<u32>,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// Delete a topic with all its records.
    Delete {
        /// The topic.
        name: String,
    },
}

/// Configuration of a topic.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Keep records for this long, such as 7d.
    #[arg(long, value_parser = humantime::parse_duration)]
    retention: Option<std::time::Duration>,
    /// Keep at most so much per partition, such as 10GiB.
    #[arg(long)]
    retention_bytes: Option<bytesize::ByteSize>,
    /// Any configuration key; an empty value resets it.
    #[arg(long = "config", value_name = "KEY=VALUE", value_parser = key_value)]
    config: Vec<(String, String)>,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .ok_or_else(|| "KEY=VALUE expected".to_owned())
}

impl ConfigArgs {
    fn pairs(self) -> Vec<(String, String)> {
        let mut out = self.config;
        if let Some(r) = self.retention {
            out.push(("retention.ms".to_owned(), r.as_millis().to_string()));
        }
        if let Some(b) = self.retention_bytes {
            out.push(("retention.bytes".to_owned(), b.as_u64().to_string()));
        }
        out
    }
}

/// Runs it.
pub(crate) fn run(global: &Global, command: TopicCommand) -> Result<(), CliError> {
    connect::run(global, |client| async move {
        let admin = client.admin();
        match command {
            TopicCommand::Create { name, partitions, config, if_not_exists, output } => {
                let topic = admin
                    .create_topic(&name, partitions, config.pairs(), if_not_exists)
                    .await
                    .map_err(|e| failed(&e))?;
                print(output, vec![topic])
            }
            TopicCommand::Alter { name, partitions, config, output } => {
                let topic = admin
                    .alter_topic(&name, partitions.unwrap_or(0), config.pairs())
                    .await
                    .map_err(|e| failed(&e))?;
                print(output, vec![topic])
            }
            TopicCommand::Truncate { name, before, partition, output } => {
                truncate(&client, &name, before.start, partition, output).await
            }
            TopicCommand::Delete { name } => admin.delete_topic(&name).await.map_err(|e| failed(&e)),
            TopicCommand::List { output } => {
                let all = admin.describe(Vec::<String>::new()).await.map_err(|e| failed(&e))?;
                print(output, all.topics)
            }
            TopicCommand::Describe { name, output } => describe(&client, &name, output).await,
        }
    })
}

async fn truncate(
    client: &Client,
    name: &str,
    before: Start,
    partitions: Vec<u32>,
    form: Output,
) -> Result<(), CliError> {
    let partitions = match (partitions.is_empty(), before) {
        (true, Start::Offset(_)) => {
            return Err(CliError::usage(
                "--before OFFSET",
                "offsets of different partitions have nothing in common",
            )
            .help("name one with --partition, or give @TIMESTAMP or latest"));
        }
        (true, _) => (0..client.partitions(name).await.map_err(|e| failed(&e))?).collect(),
        (false, _) => partitions,
    };
    let mut rows = Vec::new();
    for partition in partitions {
        let to = match before {
            Start::Earliest => Some(0),
            Start::Latest => None,
            Start::Offset(offset) => Some(offset),
            Start::Timestamp(ms) => {
                let query = [OffsetQuery { topic: name.into(), partition, at: At::Timestamp(ms) }];
                let found = client.list_offsets(&query).await.map_err(|e| failed(&e))?;
                // No record is so young: all of them are older.
                found.first().and_then(|f| f.offset)
            }
        };
        let done = client.admin().delete_records(name, partition, to).await.map_err(|e| failed(&e))?;
        rows.push(Row {
            name: format!("{name}/{partition}"),
            columns: vec![partition.to_string(), done.log_start.to_string(), done.high_watermark.to_string()],
            wide: Vec::new(),
            json: json!({
                "topic": name, "partition": partition, "logStart": done.log_start, "highWatermark": done.high_watermark,
            }),
        });
    }
    table::print(form, &["PARTITION", "LOG START", "HIGH WATERMARK"], &[], rows)
}

fn json_of(t: &v1::Topic) -> serde_json::Value {
    let config: std::collections::BTreeMap<_, _> = t.config.iter().collect();
    json!({
        "name": t.name,
        "id": t.id,
        "createdMs": t.created_ms,
        "config": config,
        "partitions": t.partitions.iter().map(|p| json!({
            "partition": p.index, "owner": p.owner, "ownerName": p.owner_name, "epoch": p.epoch,
        })).collect::<Vec<_>>(),
    })
}

fn config_text(t: &v1::Topic) -> String {
    let mut pairs: Vec<String> = t.config.iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.sort();
    pairs.join(" ")
}

fn print(form: Output, topics: Vec<v1::Topic>) -> Result<(), CliError> {
    let rows = topics
        .into_iter()
        .map(|t| Row {
            name: t.name.clone(),
            columns: vec![
                t.name.clone(),
                t.partitions.len().to_string(),
                t.partitions.iter().filter(|p| !p.owner.is_empty()).count().to_string(),
            ],
            wide: vec![t.id.to_string(), config_text(&t)],
            json: json_of(&t),
        })
        .collect();
    table::print(form, &["NAME", "PARTITIONS", "OWNED"], &["ID", "CONFIG"], rows)
}

async fn describe(client: &Client, name: &str, form: Output) -> Result<(), CliError> {
    let answer = client.admin().describe([name]).await.map_err(|e| failed(&e))?;
    let Some(topic) = answer.topics.into_iter().next() else {
        return Err(failed(&tidemill_client::ClientError::new(
            tidemill_types::ErrorCode::UnknownTopic,
            format!("topic {name}: there is no such topic"),
        )));
    };
    let rows = topic
        .partitions
        .iter()
        .map(|p| vec![p.index.to_string(), p.epoch.to_string(), p.owner_name.clone(), p.owner.clone()])
        .collect();
    let text = format!(
        "name: {}\nid: {}\nconfig: {}\n\n{}",
        topic.name,
        topic.id,
        config_text(&topic),
        table::columns(&["PARTITION", "EPOCH", "OWNER", "ADDRESS"], rows)
    );
    let compaction = compaction::of(client, &topic).await;
    let mut json = json_of(&topic);
    json["compaction"] = compaction::json(&compaction);
    table::object(form, &topic.name, &(text + &compaction::text(compaction)), &json)
}
