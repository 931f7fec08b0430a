//! From flags to a client, and from a client's errors to what the user sees.

use std::future::Future;

use tidemill_client::{Client, ClientConfig, ClientError};
use tidemill_types::ErrorCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    args::Global,
    error::{CliError, Exit},
    logs,
};

/// Runs a client command to its end; SIGINT ends it with 130.
pub(crate) fn run<F>(global: &Global, command: impl FnOnce(Client) -> F) -> Result<(), CliError>
where
    F: Future<Output = Result<(), CliError>>,
{
    logs::start(global.log_format, logs::level(global, "error"))?;
    crate::roles::runtime()?.block_on(async {
        tokio::select! {
            done = connected(global, command) => done,
            interrupted = tokio::signal::ctrl_c() => {
                let why = if interrupted.is_ok() { "by a signal" } else { "signals cannot be watched" };
                Err(CliError::new("interrupted", why, ErrorCode::OutcomeUnknown).exit(Exit::Interrupted))
            }
        }
    })
}

/// As [`run`], for a command that has something to finish: the first signal only cancels the token, the second one
/// ends the process at once.
pub(crate) fn run_stoppable<F>(
    global: &Global,
    command: impl FnOnce(Client, CancellationToken) -> F,
) -> Result<(), CliError>
where
    F: Future<Output = Result<(), CliError>>,
{
    logs::start(global.log_format, logs::level(global, "error"))?;
    crate::roles::runtime()?.block_on(async {
        let stop = CancellationToken::new();
        watch(stop.clone())?;
        let client = tokio::select! {
            client = open(global) => client?,
            () = stop.cancelled() => return Err(interrupted("connect", "by a signal")),
        };
        command(client, stop).await
    })
}

/// A command that a signal ended.
pub(crate) fn interrupted(what: impl Into<String>, why: impl Into<String>) -> CliError {
    CliError::new(what, why, ErrorCode::OutcomeUnknown).exit(Exit::Interrupted)
}

fn watch(stop: CancellationToken) -> Result<(), CliError> {
    let fail = |e: std::io::Error| CliError::new("signals", e.to_string(), ErrorCode::Internal);
    let mut int = signal(SignalKind::interrupt()).map_err(fail)?;
    let mut term = signal(SignalKind::terminate()).map_err(fail)?;
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
            }
            if first {
                stop.cancel();
            }
        }
        std::process::exit(i32::from(Exit::Interrupted as u8));
    });
    Ok(())
}

async fn connected<F>(global: &Global, command: impl FnOnce(Client) -> F) -> Result<(), CliError>
where
    F: Future<Output = Result<(), CliError>>,
{
    command(open(global).await?).await
}

async fn open(global: &Global) -> Result<Client, CliError> {
    let config = ClientConfig { timeout: global.timeout, ..ClientConfig::new(global.server.clone()) };
    Client::connect(config).await.map_err(|e| {
        failed(&e).help(format!(
            "is a cluster running at {}? `tidemill up` starts one; --server names another",
            global.server.join(", ")
        ))
    })
}

/// A client's error as the user sees it.
pub(crate) fn failed(e: &ClientError) -> CliError {
    let code = e.code.unwrap_or(ErrorCode::NotReady);
    let (what, why) = e.message.split_once(": ").unwrap_or(("request", e.message.as_str()));
    let mut error = CliError::new(what, why, code);
    if let Some(help) = help(code) {
        error = error.help(help);
    }
    error
}

fn help(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::UnknownTopic => {
            "`tidemill topic list` shows the topics, `tidemill topic create NAME` makes one"
        }
        ErrorCode::UnknownGroup => "`tidemill group list` shows the groups",
        ErrorCode::GroupNotEmpty => "stop its consumers first: `tidemill group describe NAME` shows them",
        ErrorCode::TopicExists => {
            "`tidemill topic describe NAME` shows it, `tidemill topic alter` changes it"
        }
        ErrorCode::UnknownConfigKey => {
            "known keys: copies, ackQuorum, retention.ms, retention.bytes, max.message.bytes, roll.bytes, roll.ms"
        }
        ErrorCode::TopicClaimed => {
            "`tidemill describe topic NAME` shows who claims it; change or delete that object"
        }
        ErrorCode::TopicTombstoned => {
            "`tidemill apply` brings it back, `tidemill topic delete NAME` removes it with its records"
        }
        ErrorCode::NotEnoughBookies => "`tidemill cluster members` shows which bookies are writable",
        ErrorCode::DiskFull => "make room on the bookies' disks; they take writes again by themselves",
        ErrorCode::NotReady | ErrorCode::QuorumUnavailable | ErrorCode::NoOwner => {
            "the cluster is starting or a member is away: `tidemill cluster status` shows what is missing; try again"
        }
        _ => return None,
    })
}
