//! `tidemill group`.

mod offsets;
mod reset;
mod show;

use std::path::PathBuf;

use clap::Subcommand;

use super::{
    Output,
    connect::{self, failed},
};
use crate::{args::Global, error::CliError};

/// Below `tidemill group`.
#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// List groups.
    List {
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// Show members, what they have, and how far they are.
    Describe {
        /// The group.
        name: String,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// Move committed offsets of a group without members; shows the plan unless --execute is given.
    Reset {
        /// The group.
        name: String,
        /// Partitions of this topic; without any: all that the group has committed.
        #[arg(long = "topic", value_name = "TOPIC")]
        topics: Vec<String>,
        /// Only these partitions of the topics.
        #[arg(long = "partition", value_name = "N", requires = "topics")]
        partitions: Vec<u32>,
        /// Where to: earliest, latest, an offset, or @TIMESTAMP (ms since 1970 or 2026-01-31T12:00:00Z).
        #[arg(long, value_parser = super::consume::parse_start, allow_hyphen_values = true)]
        to: tidemill_client::Start,
        /// Do it.
        #[arg(long)]
        execute: bool,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
    /// Forget a group without members and its committed offsets.
    Delete {
        /// The group.
        name: String,
    },
    /// Print the committed offsets as JSON, for `import`.
    Export {
        /// The group.
        name: String,
    },
    /// Set committed offsets of a group without members from the JSON of `export`.
    Import {
        /// The group.
        name: String,
        /// The file; - for standard input.
        #[arg(long, short, default_value = "-")]
        file: PathBuf,
        /// Do it; without it the plan is shown.
        #[arg(long)]
        execute: bool,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: Output,
    },
}

/// Runs it.
pub(crate) fn run(global: &Global, command: GroupCommand) -> Result<(), CliError> {
    // Before anything is connected: a file that cannot be read is wrong usage.
    let input = match &command {
        GroupCommand::Import { file, .. } => Some(offsets::read(file)?),
        _ => None,
    };
    connect::run(global, |client| async move {
        let groups = client.groups();
        match command {
            GroupCommand::List { output } => show::list(&client, output).await,
            GroupCommand::Describe { name, output } => show::describe(&client, &name, output).await,
            GroupCommand::Reset { name, topics, partitions, to, execute, output } => {
                let to = reset::target(to);
                reset::run(&client, &name, &topics, &partitions, &to, (execute, output)).await
            }
            GroupCommand::Delete { name } => groups.delete(&name).await.map_err(|e| failed(&e)),
            GroupCommand::Export { name } => offsets::export(&client, &name).await,
            GroupCommand::Import { name, execute, output, .. } => {
                let to = offsets::parse(&input.unwrap_or_default())?;
                reset::run(&client, &name, &[], &[], &to, (execute, output)).await
            }
        }
    })
}
