//! SIGINT and SIGTERM: the first one drains, the second one ends at once.

use tidemill_runtime::Supervisor;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{CliError, Exit};

/// Cancels `sup` at the first signal (or, with `parent`, when standard input ends); ends the process at the second signal.
pub(crate) fn watch(sup: &Supervisor, parent: bool) -> Result<(), CliError> {
    let fail = |e: std::io::Error| CliError::usage("signals", e.to_string()).exit(Exit::Failed);
    let mut int = signal(SignalKind::interrupt()).map_err(fail)?;
    let mut term = signal(SignalKind::terminate()).map_err(fail)?;
    let token = sup.token().clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            () = token.cancelled() => {}
            () = parent_gone(), if parent => tracing::info!("the parent process is gone"),
        }
        if !token.is_cancelled() {
            tracing::info!("stopping; a second signal ends at once");
            token.cancel();
        }
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
        }
        std::process::exit(i32::from(Exit::Interrupted as u8));
    });
    Ok(())
}

/// Ends when standard input does: the pipe's other end lives as long as the parent.
async fn parent_gone() {
    use tokio::io::AsyncReadExt;
    let mut input = tokio::io::stdin();
    let mut buf = [0u8; 64];
    loop {
        match input.read(&mut buf).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
