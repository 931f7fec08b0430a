//! Logging of a process: text on a terminal, JSON by flag, `TIDEMILL_LOG` as filter.

use clap::ValueEnum;
use tidemill_runtime::telemetry::{LogFormat, init_logs};

use crate::{args::Global, error::CliError};

/// `--log-format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Variable with the log filter.
pub(crate) const LOG_ENV: &str = "TIDEMILL_LOG";

/// Starts logging to stderr with `default` unless the variable says otherwise.
pub(crate) fn start(format: Format, default: &str) -> Result<(), CliError> {
    let filter = std::env::var(LOG_ENV).unwrap_or_else(|_| default.to_owned());
    let format = match format {
        Format::Text => LogFormat::Text,
        Format::Json => LogFormat::Json,
    };
    init_logs(format, &filter).map_err(|e| {
        CliError::usage("logging", e)
            .help("see the syntax of RUST_LOG, for example info,tidemill_bookie=debug")
    })
}

/// The filter that `-v` asks for; `default` without it.
pub(crate) fn level<'a>(global: &Global, default: &'a str) -> &'a str {
    match global.verbose {
        0 => default,
        1 => "info",
        _ => {
            "info,tidemill=debug,tidemill_broker=debug,tidemill_bookie=debug,tidemill_meta=debug,tidemill_ledger=debug,tidemill_partition_log=debug,tidemill_client=debug"
        }
    }
}
