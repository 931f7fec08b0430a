//! What people see while a command runs: nothing in the first second, then one line on a terminal.

mod pace;
mod text;

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;

pub(crate) use pace::Pace;
pub(crate) use text::{bytes, count, per_second, span};

use crate::args::Global;

/// Work that ends sooner shows nothing.
const SILENT: Duration = Duration::from_secs(1);
/// Between two looks at the counter.
const EVERY: Duration = Duration::from_millis(200);

/// A line on standard error with count, rate and, when the total is known, the time left. Gone when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    task: Option<JoinHandle<()>>,
    bar: ProgressBar,
}

impl Progress {
    /// Begins; `done` is asked for the number of records. Silent with `--quiet`, without a terminal, and when standard
    /// output is a terminal that data goes to (`data`). Needs the runtime.
    pub(crate) fn start(
        global: &Global,
        data: bool,
        total: Option<u64>,
        done: impl Fn() -> u64 + Send + 'static,
    ) -> Self {
        let bar = ProgressBar::hidden();
        let terminal = std::io::stderr().is_terminal() && !(data && std::io::stdout().is_terminal());
        let task = (terminal && !global.quiet).then(|| tokio::spawn(show(bar.clone(), total, done)));
        Self { task, bar }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.bar.finish_and_clear();
    }
}

async fn show(bar: ProgressBar, total: Option<u64>, done: impl Fn() -> u64) {
    let begin = Instant::now();
    tokio::time::sleep(SILENT).await;
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    loop {
        bar.set_message(line(done(), total, begin.elapsed()));
        bar.tick();
        tokio::time::sleep(EVERY).await;
    }
}

/// `12 000 records, 6 000/s, 3 s left`.
fn line(done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let rate = per_second(done, elapsed);
    let mut line = format!("{} records, {}/s", count(done), count(rate));
    if let Some(total) = total
        && rate > 0
    {
        let left = Duration::from_secs(total.saturating_sub(done) / rate);
        line.push_str(&format!(", {} left", span(left)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_count_rate_and_time_left() {
        let two = Duration::from_secs(2);
        assert_eq!(line(12_000, None, two), "12 000 records, 6 000/s");
        assert_eq!(line(12_000, Some(30_000), two), "12 000 records, 6 000/s, 3 s left");
        assert_eq!(line(0, Some(30_000), two), "0 records, 0/s");
    }
}
