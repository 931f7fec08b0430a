//! Progress on standard error: only on a terminal, only for work that lasts.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Global;

/// Work shorter than this shows nothing.
const QUIET: Duration = Duration::from_secs(1);

/// A running count with its rate.
pub(crate) struct Progress {
    started: Instant,
    unit: &'static str,
    shown: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins now.
    pub(crate) fn start(global: &Global, unit: &'static str) -> Self {
        Self { started: Instant::now(), unit, shown: !global.quiet && std::io::stderr().is_terminal(), bar: None }
    }

    /// So many so far.
    pub(crate) fn at(&mut self, count: u64) {
        if !self.shown || self.started.elapsed() < QUIET {
            return;
        }
        let unit = self.unit;
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} {msg} ({per_sec}, {elapsed})") {
                bar.set_style(style);
            }
            bar.set_message(unit);
            bar
        });
        bar.set_position(count);
        bar.tick();
    }

    /// Clears the line.
    pub(crate) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
