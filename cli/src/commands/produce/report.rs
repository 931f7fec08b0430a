//! What became of the records.

use std::{collections::VecDeque, time::Duration};

use tidemill_client::{Counters, Delivery};
use tidemill_types::ErrorCode;

use crate::{
    args::Global,
    error::{CliError, Exit},
    output,
};

/// Handles kept for `--print-offsets` at most, before those that are decided are printed.
const KEEP: usize = 10_000;

/// Counts what was taken, and prints offsets in the order of the lines.
pub(super) struct Report {
    taken: u64,
    print: bool,
    waiting: VecDeque<Delivery>,
    first_error: Option<String>,
}

impl Report {
    pub(super) fn start(print: bool) -> Self {
        Self { taken: 0, print, waiting: VecDeque::new(), first_error: None }
    }

    /// Records taken by the producer.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// One more. Without `--print-offsets` only one handle of many is kept, to know why something failed.
    pub(super) fn took(&mut self, delivery: Delivery) -> Result<(), CliError> {
        self.taken += 1;
        if self.print || self.taken % 64 == 1 {
            self.waiting.push_back(delivery);
        }
        if self.waiting.len() >= KEEP { self.decided() } else { Ok(()) }
    }

    /// Prints those at the front that are decided.
    fn decided(&mut self) -> Result<(), CliError> {
        let mut text = String::new();
        while let Some(result) = self.waiting.front().and_then(Delivery::try_get) {
            self.waiting.pop_front();
            match result {
                Ok(meta) if self.print => {
                    let offset = meta.offset.map_or_else(|| "-".to_owned(), |o| o.to_string());
                    text.push_str(&format!("{} {offset}\n", meta.partition));
                }
                Ok(_) => {}
                Err(e) => {
                    if self.print {
                        text.push_str("- -\n");
                    }
                    self.first_error.get_or_insert(e.to_string());
                }
            }
        }
        let mut out = std::io::stdout().lock();
        if text.is_empty() { Ok(()) } else { output::write_to(&mut out, text.as_bytes()) }
    }

    /// Exit 0 only when every record was acknowledged and the input was read to its end.
    pub(super) fn end(
        mut self,
        global: &Global,
        c: &Counters,
        took: Duration,
        stopped: Option<CliError>,
    ) -> Result<(), CliError> {
        self.decided()?;
        let counts = format!(
            "{} acknowledged, {} not written, {} of unknown outcome",
            c.acked, c.not_written, c.unknown
        );
        if let Some(mut e) = stopped {
            e.why = format!("{}; {counts}", e.why);
            return Err(e);
        }
        if c.acked == self.taken {
            if !global.quiet {
                let rate = c.acked as f64 / took.as_secs_f64().max(1e-9);
                output::note(&format!("{} records acknowledged in {took:.2?} ({rate:.0}/s)", c.acked));
            }
            return Ok(());
        }
        let why = self.first_error.unwrap_or_else(|| "see the counts".to_owned());
        let code = if c.unknown > 0 { ErrorCode::OutcomeUnknown } else { ErrorCode::NotWritten };
        Err(CliError::new("produce", format!("{counts}; first failure: {why}"), code).help(
            "records of unknown outcome may be there or not: read the topic before you send them again",
        ))
    }
}

/// The error of a run that SIGINT ended.
pub(super) fn interrupted(by_signal: bool) -> CliError {
    let why = if by_signal { "by a signal, reading stopped" } else { "signals cannot be watched" };
    CliError::new("interrupted", why, ErrorCode::NotReady).exit(Exit::Interrupted)
}
