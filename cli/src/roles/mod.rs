//! `tidemill meta|bookie|broker`: one role in the foreground, configured by file, environment and flags.

pub(crate) mod bookie;
pub(crate) mod broker;
pub(crate) mod meta;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Arg, ArgMatches, Args, Command};
use serde::{Serialize, de::DeserializeOwned};
use tidemill_runtime::{
    Health, Metrics, Supervisor,
    config::{ConfigError, Layers},
    http,
};
use tidemill_types::ErrorCode;

use crate::{
    args::Global,
    error::{CliError, Exit},
    logs, signals,
};

/// Variables with the prefix `TIDEMILL_` that are not configuration keys of a role.
pub(crate) const OTHER_VARIABLES: [&str; 2] = ["TIDEMILL_SERVER", logs::LOG_ENV];

/// Flags of every role; the configuration keys come on top, each as a flag of its own.
#[derive(Clone, Debug, Args)]
pub(crate) struct RoleFlags {
    /// Configuration file (YAML).
    #[arg(long)]
    pub(crate) config: Option<PathBuf>,
    /// Print the effective configuration with the source of each value, and end.
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Address of the HTTP port: /metrics, /livez, /readyz; off when absent.
    #[arg(long)]
    pub(crate) http: Option<SocketAddr>,
    /// End when standard input ends.
    #[arg(long, hide = true)]
    pub(crate) exit_with_parent: bool,
}

/// A role that can be run by itself.
pub(crate) trait Role {
    /// Its configuration.
    type Config: Serialize + DeserializeOwned + Default;
    /// What runs.
    type Handle: Send;
    /// Its name, such as `bookie`.
    const NAME: &'static str;
    /// Key and help of each flag.
    const KEYS: &'static [(&'static str, &'static str)];
    /// Starts it. What it needs may come later: it waits.
    fn start(
        config: Self::Config,
        sup: &Supervisor,
        metrics: &Metrics,
    ) -> impl Future<Output = Result<Self::Handle, CliError>> + Send;
    /// Drains and ends it.
    fn stop(handle: Self::Handle) -> impl Future<Output = ()> + Send;
    /// One line for the log: where it serves.
    fn describe(handle: &Self::Handle) -> String;
}

/// Adds one flag per configuration key to the role's command.
pub(crate) fn with_keys<R: Role>(command: Command) -> Command {
    R::KEYS.iter().fold(command, |c, (key, help)| {
        c.arg(Arg::new(*key).long(*key).help(*help).value_name("VALUE").help_heading("Configuration keys"))
    })
}

/// The keys of [`with_keys`] that were given.
fn given<R: Role>(matches: &ArgMatches) -> Vec<(&'static str, String)> {
    let Some(matches) = matches.subcommand_matches(R::NAME) else { return Vec::new() };
    R::KEYS.iter().filter_map(|(key, _)| Some((*key, matches.get_one::<String>(key)?.clone()))).collect()
}

/// The layers of a role: defaults, file, environment, flags.
fn layers<R: Role>(flags: &RoleFlags, given: &[(&str, String)]) -> Result<Layers, CliError> {
    let mut layers = Layers::new(&R::Config::default()).map_err(config_error)?;
    if let Some(file) = &flags.config {
        layers.file(file).map_err(config_error)?;
    }
    let vars = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    layers.env(vars, &OTHER_VARIABLES).map_err(config_error)?;
    for (key, value) in given {
        layers.flag(key, value).map_err(config_error)?;
    }
    Ok(layers)
}

/// A configuration error as the user sees it.
#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
pub(crate) fn config_error(e: ConfigError) -> CliError {
    let code = match e {
        ConfigError::UnknownKey { .. } => ErrorCode::UnknownConfigKey,
        ConfigError::File { .. } | ConfigError::Value { .. } => ErrorCode::InvalidArgument,
    };
    CliError::new("configuration", e.to_string(), code)
        .exit(Exit::Usage)
        .help("--print-config shows every key with its value and source")
}

/// Runs the role until a signal or a fatal error.
#[expect(clippy::needless_pass_by_value, reason = "the flags end here")]
pub(crate) fn run<R: Role>(global: &Global, flags: RoleFlags, matches: &ArgMatches) -> Result<(), CliError> {
    let layers = layers::<R>(&flags, &given::<R>(matches))?;
    if flags.print_config {
        return crate::output::print(&layers.print());
    }
    let config: R::Config = layers.build().map_err(config_error)?;
    logs::start(global.log_format, logs::level(global, "info"))?;
    let runtime = runtime()?;
    let done = runtime.block_on(serve::<R>(&flags, config));
    // The thread that reads standard input for `--exit-with-parent` waits for ever: a role that did not start must end all
    // the same, so that its parent sees it and starts it again.
    runtime.shutdown_background();
    done
}

async fn serve<R: Role>(args: &RoleFlags, config: R::Config) -> Result<(), CliError> {
    let health = Health::new();
    let sup = Supervisor::new(health.clone());
    signals::watch(&sup, args.exit_with_parent)?;
    let metrics = Metrics::new();
    // The HTTP server has a supervisor of its own: it answers until the role has drained.
    let pages = Supervisor::new(health.clone());
    if let Some(listen) = args.http {
        let title = format!("tidemill {}", R::NAME);
        http::serve(&pages, listen, &title, health, metrics.clone()).await.map_err(|e| bind_error(&e))?;
    }
    let part = sup.apart();
    let handle = tokio::select! {
        started = R::start(config, &part, &metrics) => started?,
        () = sup.token().cancelled() => return ended(&sup),
    };
    tracing::info!(role = R::NAME, "{}", R::describe(&handle));
    sup.token().cancelled().await;
    R::stop(handle).await;
    part.stop().await;
    pages.stop().await;
    ended(&sup)
}

/// The result of a role that has ended.
pub(crate) fn ended(sup: &Supervisor) -> Result<(), CliError> {
    match sup.fatal_reason() {
        None => Ok(()),
        Some(why) => Err(CliError::new("the process cannot go on", why, ErrorCode::Internal)
            .help("see the log above for the first error; the data on disk is read again at the next start")),
    }
}

/// An address that cannot be bound.
pub(crate) fn bind_error(e: &tidemill_runtime::net::BindError) -> CliError {
    CliError::usage("start", e.to_string())
}

/// The tokio runtime of a server process.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("tidemill")
        .build()
        .map_err(|e| CliError::new("runtime", e.to_string(), ErrorCode::Internal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_key_is_a_flag<R: Role>() {
        let shown = Layers::new(&R::Config::default()).unwrap().print();
        let keys: Vec<&str> = shown.lines().filter_map(|l| l.split_once(": ").map(|(k, _)| k)).collect();
        let mut flags: Vec<&str> = R::KEYS.iter().map(|(k, _)| *k).collect();
        flags.sort_unstable();
        assert_eq!(keys, flags, "{}", R::NAME);
    }

    #[test]
    fn every_configuration_key_is_a_flag() {
        every_key_is_a_flag::<meta::Meta>();
        every_key_is_a_flag::<bookie::Bookie>();
        every_key_is_a_flag::<broker::Broker>();
    }
}
