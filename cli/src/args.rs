//! What can be typed.

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::{
    logs::Format,
    roles::{self, RoleFlags},
    up::child::Restart,
};

/// Durable, replicated messaging.
#[derive(Debug, Parser)]
#[command(
    name = "tidemill",
    version,
    about,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line with the configuration keys of the roles as flags.
pub(crate) fn command() -> clap::Command {
    Cli::command()
        .mut_subcommand("meta", roles::with_keys::<roles::meta::Meta>)
        .mut_subcommand("bookie", roles::with_keys::<roles::bookie::Bookie>)
        .mut_subcommand("broker", roles::with_keys::<roles::broker::Broker>)
}

/// What was typed; wrong usage ends the process with exit code 2.
pub(crate) fn parse() -> (Cli, ArgMatches) {
    let matches = command().get_matches();
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => (cli, matches),
        Err(e) => e.format(&mut command()).exit(),
    }
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Brokers to talk to; the first that answers tells about the others.
    #[arg(
        long,
        global = true,
        env = "TIDEMILL_SERVER",
        default_value = "http://127.0.0.1:7450",
        value_delimiter = ',',
        value_name = "URL[,URL]"
    )]
    pub(crate) server: Vec<String>,
    /// How long one call may take, with its retries, before its outcome counts as unknown. Records that are written have
    /// a bound of their own: --delivery-timeout.
    #[arg(long, global = true, default_value = "30s", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) timeout: std::time::Duration,
    /// No progress, no summary.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// More log lines on stderr (-v info, -vv debug).
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Form of log lines.
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub(crate) log_format: Format,
    /// Colours in human output.
    #[arg(long, global = true, value_enum, default_value = "auto")]
    pub(crate) color: Color,
}

/// `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal only.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole cluster on this machine, durable in a directory.
    Up(UpArgs),
    /// Run a member of the metadata quorum.
    Meta(RoleFlags),
    /// Run a bookie, empty one, or look into a stopped bookie's files.
    #[command(args_conflicts_with_subcommands = true)]
    Bookie(BookieArgs),
    /// Run a broker.
    Broker(RoleFlags),
    #[command(flatten)]
    Client(crate::commands::ClientCommand),
    /// Print the completion script of a shell.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// `tidemill up`.
#[derive(Clone, Debug, Args)]
pub(crate) struct UpArgs {
    /// Where the data lies.
    #[arg(long, default_value = "./tidemill-data", env = "TIDEMILL_DATA_DIR")]
    pub(crate) data_dir: PathBuf,
    /// Address of the first broker (gRPC); further brokers take free ports.
    #[arg(long, default_value = "127.0.0.1:7450")]
    pub(crate) listen: SocketAddr,
    /// Address of the HTTP port: /metrics, /livez, /readyz.
    #[arg(long, default_value = "127.0.0.1:7451")]
    pub(crate) http: SocketAddr,
    /// Bookies, 1 to 32. With fewer than three, topics get fewer copies.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) bookies: u8,
    /// Brokers, 1 to 32.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) brokers: u8,
    /// Members of the metadata quorum: 1, 3 or 5.
    #[arg(long, default_value_t = 1, value_parser = parse_metas)]
    pub(crate) metas: u8,
    /// Each member as a process of its own, with its own log and pid file.
    #[arg(long)]
    pub(crate) processes: bool,
    /// With --processes: what to do when a member ends by itself.
    #[arg(long, value_enum, default_value = "always")]
    pub(crate) restart: Restart,
    /// Extra configuration of all members of a role, such as bookie.gc-pass-ms=60000.
    #[arg(long = "set", value_name = "ROLE.KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Setting>,
    /// Manifests to be applied once the cluster serves; may be given several times.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub(crate) manifests: Vec<PathBuf>,
}

/// One `--set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) role: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

fn parse_set(text: &str) -> Result<Setting, String> {
    let (left, value) = text.split_once('=').ok_or("ROLE.KEY=VALUE expected")?;
    let (role, key) = left.split_once('.').ok_or("ROLE.KEY=VALUE expected")?;
    if !["meta", "bookie", "broker"].contains(&role) {
        return Err(format!("role {role:?}: meta, bookie or broker expected"));
    }
    Ok(Setting { role: role.to_owned(), key: key.to_owned(), value: value.to_owned() })
}

fn parse_metas(text: &str) -> Result<u8, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        "5" => Ok(5),
        _ => Err("1, 3 or 5 expected".to_owned()),
    }
}

/// `tidemill bookie`.
#[derive(Debug, Args)]
pub(crate) struct BookieArgs {
    #[command(flatten)]
    pub(crate) role: RoleFlags,
    #[command(subcommand)]
    pub(crate) command: Option<BookieCommand>,
}

/// Below `tidemill bookie`.
#[derive(Debug, Subcommand)]
pub(crate) enum BookieCommand {
    /// Read the files of a stopped bookie: cookie, segments, ledgers, damage.
    Inspect {
        /// The data directory of each lane, comma-separated.
        #[arg(long, required = true, value_delimiter = ',')]
        data_dir: Vec<PathBuf>,
        /// Read every sealed segment and check it.
        #[arg(long)]
        check: bool,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: crate::commands::Output,
    },
    /// Empty a bookie of a running cluster before it goes: its ledgers move to the others.
    Drain {
        /// Its name or uuid.
        #[arg(value_name = "UUID|NAME")]
        bookie: String,
        /// Take the wish back.
        #[arg(long)]
        undo: bool,
        /// Return at once instead of showing the progress until it is empty.
        #[arg(long, conflicts_with = "undo")]
        no_wait: bool,
    },
    /// Show a bookie of a running cluster and what still needs it.
    Describe {
        /// Its name or uuid.
        #[arg(value_name = "UUID|NAME")]
        bookie: String,
        /// Form of the output.
        #[arg(long, short, value_enum, default_value = "table")]
        output: crate::commands::Output,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn settings() {
        let want = Setting { role: "bookie".into(), key: "segment-bytes".into(), value: "1".into() };
        assert_eq!(parse_set("bookie.segment-bytes=1"), Ok(want));
        assert!(parse_set("x.y=1").is_err() && parse_set("bookie=1").is_err() && parse_metas("2").is_err());
    }
}
