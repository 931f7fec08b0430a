//! `tidemill apply|get|describe|delete|diff`: the manifests of Kubernetes against a cluster without it, planned by the operator's
//! own code.

mod apply;
mod cluster;
mod delete;
mod describe;
mod diff;
mod get;
mod groups;
mod kind;
mod observe;
mod read;
mod show;
mod topics;

use std::path::PathBuf;

use clap::Args;

pub(crate) use self::{apply::apply_files, kind::Kind};
use super::{Output, connect};
use crate::{args::Global, error::CliError};

/// Where manifests come from.
#[derive(Clone, Debug, Args)]
pub(crate) struct Files {
    /// A file, a folder of .yaml, .yml and .json files, or - for standard input; may be given several times.
    #[arg(short = 'f', long = "filename", required = true, value_name = "FILE|DIR|-")]
    pub(crate) files: Vec<PathBuf>,
    /// Namespace of manifests that name none.
    #[arg(short = 'n', long, default_value = "default")]
    pub(crate) namespace: String,
}

/// `tidemill apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    files: Files,
    /// Tell what would happen and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Wait at most so long until every partition has an owner, up to 30s.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    wait: std::time::Duration,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value = "table")]
    output: Output,
}

/// `tidemill get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// topics or consumergroups; also KIND/NAME.
    #[arg(value_name = "KIND[/NAME]")]
    kind: String,
    /// Names.
    names: Vec<String>,
    /// Namespace of the objects.
    #[arg(short = 'n', long, default_value = "default")]
    namespace: String,
    /// Form of the output.
    #[arg(long, short, value_enum, default_value = "table")]
    output: Output,
}

/// `tidemill describe`.
#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    /// topic or consumergroup; also KIND/NAME.
    #[arg(value_name = "KIND[/NAME]")]
    kind: String,
    /// Names.
    names: Vec<String>,
    /// Namespace of the objects.
    #[arg(short = 'n', long, default_value = "default")]
    namespace: String,
}

/// `tidemill delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// topic or consumergroup; also KIND/NAME.
    #[arg(value_name = "KIND[/NAME]", required_unless_present = "files")]
    kind: Option<String>,
    /// Names.
    names: Vec<String>,
    /// What stands in these manifests instead, with their own deletionPolicy and purgeAfter.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", conflicts_with = "kind")]
    files: Vec<PathBuf>,
    /// Namespace of manifests that name none.
    #[arg(short = 'n', long, default_value = "default")]
    namespace: String,
    /// With KIND: a deleted topic keeps its records for so long.
    #[arg(long, default_value = "72h", value_parser = humantime::parse_duration)]
    purge_after: std::time::Duration,
    /// Tell what would happen and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// `tidemill diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    files: Files,
}

/// `tidemill apply`.
#[expect(clippy::needless_pass_by_value, reason = "what the command line gave is used up here")]
pub(crate) fn apply(global: &Global, args: ApplyArgs) -> Result<(), CliError> {
    // Nothing is asked of a cluster for manifests that are wrong.
    let manifests = read::all(&args.files.files, &args.files.namespace)?;
    connect::run(global, |client| async move {
        apply::apply(&client, &manifests, args.dry_run, args.wait, args.output).await
    })
}

/// `tidemill diff`.
#[expect(clippy::needless_pass_by_value, reason = "what the command line gave is used up here")]
pub(crate) fn diff(global: &Global, args: DiffArgs) -> Result<(), CliError> {
    let manifests = read::all(&args.files.files, &args.files.namespace)?;
    connect::run(global, |client| async move { diff::diff(&client, &manifests).await })
}

/// `tidemill get`.
pub(crate) fn get(global: &Global, args: GetArgs) -> Result<(), CliError> {
    let (kind, names) = kind::parse(&args.kind, args.names)?;
    connect::run(global, |client| async move {
        get::get(&client, kind, &names, &args.namespace, args.output).await
    })
}

/// `tidemill describe`.
pub(crate) fn describe(global: &Global, args: DescribeArgs) -> Result<(), CliError> {
    let (kind, names) = kind::parse(&args.kind, args.names)?;
    connect::run(
        global,
        |client| async move { describe::describe(&client, kind, &names, &args.namespace).await },
    )
}

/// `tidemill delete`.
pub(crate) fn delete(global: &Global, args: DeleteArgs) -> Result<(), CliError> {
    if let Some(kind) = &args.kind {
        let (kind, names) = kind::parse(kind, args.names)?;
        if names.is_empty() {
            return Err(CliError::usage("delete", "no name is given").help("tidemill delete topic NAME"));
        }
        return connect::run(global, |client| async move {
            delete::named(&client, kind, &names, &args.namespace, args.purge_after, args.dry_run).await
        });
    }
    let manifests = read::all(&args.files, &args.namespace)?;
    connect::run(global, |client| async move { delete::manifests(&client, &manifests, args.dry_run).await })
}
