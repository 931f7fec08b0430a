//! `tidemill admin`: what cannot be undone.

use std::io::{self, IsTerminal, Write};

use clap::{Args, Subcommand};
use tidemill_types::ErrorCode;

use super::{
    bookie_drain,
    connect::{self, failed},
};
use crate::{args::Global, error::CliError, output};

/// Below `tidemill admin`.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Bookies that are gone, or may go.
    #[command(subcommand)]
    Bookie(BookieCommand),
    /// Ledgers that cannot be decided.
    #[command(subcommand)]
    Ledger(LedgerCommand),
}

/// Below `tidemill admin bookie`.
#[derive(Debug, Subcommand)]
pub(crate) enum BookieCommand {
    /// Declare a stopped bookie gone for good: its copies are made again from the others.
    Lost {
        /// Its uuid; `tidemill cluster members -o wide` shows it.
        uuid: String,
        #[command(flatten)]
        sure: Sure,
    },
    /// Retire a drained or lost bookie for ever; refused while anything needs it. Then its volume may be deleted.
    Retire {
        /// Its uuid; `tidemill cluster members -o wide` shows it.
        uuid: String,
        #[command(flatten)]
        sure: Sure,
    },
}

/// Below `tidemill admin ledger`.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Close a ledger whose copies are lost, at its last provable entry: what only the lost bookies held is gone.
    ForceClose {
        /// The ledger's id.
        id: u64,
        /// Accept that acknowledged records are lost.
        #[arg(long, required = true)]
        accept_loss: bool,
        #[command(flatten)]
        sure: Sure,
    },
}

/// `--yes`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Sure {
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

/// Runs it.
pub(crate) fn run(global: &Global, command: AdminCommand) -> Result<(), CliError> {
    match command {
        AdminCommand::Bookie(BookieCommand::Lost { uuid, sure }) => {
            sure.ask(&format!("declare bookie {uuid} lost: it answers nobody any more"))?;
            connect::run(global, |client| async move {
                let b = client.admin().mark_bookie_lost(&uuid).await.map_err(|e| failed(&e))?;
                output::print(&format!("bookie {uuid} is lost; {} ledgers are to be repaired\n", b.ledgers))
            })
        }
        AdminCommand::Bookie(BookieCommand::Retire { uuid, sure }) => {
            sure.ask(&format!("retire bookie {uuid}: it never comes back under this uuid"))?;
            connect::run(global, |client| async move {
                let (retired, b) = client.admin().retire_bookie(&uuid).await.map_err(|e| failed(&e))?;
                if retired {
                    return output::print(&format!("bookie {uuid} is retired; its volume may be deleted\n"));
                }
                output::print(&bookie_drain::text(&b))?;
                let why = format!("{} ledgers still need it", b.ledgers);
                Err(CliError::new(format!("retire bookie {uuid}"), why, ErrorCode::WrongState)
                    .help("`tidemill cluster status` shows what the repair waits for"))
            })
        }
        AdminCommand::Ledger(LedgerCommand::ForceClose { id, accept_loss, sure }) => {
            sure.ask(&format!("close ledger {id} at its last provable entry: records may be lost for good"))?;
            connect::run(global, |client| async move {
                let l = client.admin().force_close_ledger(id, accept_loss).await.map_err(|e| failed(&e))?;
                let end = l.last_entry.unwrap_or(-1);
                output::print(&format!("ledger {id} is closed at entry {end}\n"))
            })
        }
    }
}

impl Sure {
    /// Asks on the terminal, unless `--yes` was given.
    fn ask(self, what: &str) -> Result<(), CliError> {
        if self.yes {
            return Ok(());
        }
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Err(CliError::usage(
                "confirmation",
                format!("{what}: this needs --yes, as nobody can be asked"),
            ));
        }
        let mut err = io::stderr().lock();
        let mut answer = String::new();
        let asked = write!(err, "{what}. Sure? [y/N] ")
            .and_then(|()| err.flush())
            .and_then(|()| stdin.read_line(&mut answer));
        match asked {
            Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
            Ok(_) => {
                Err(CliError::new("confirmation", "not given, nothing was changed", ErrorCode::WrongState))
            }
            Err(e) => Err(CliError::new("confirmation", e.to_string(), ErrorCode::Internal)),
        }
    }
}
