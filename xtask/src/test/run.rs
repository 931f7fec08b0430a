//! Runs one step: its output goes through to the terminal, its closing lines are counted on the way.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{self, Stdio};
use std::time::{Duration, Instant};

use super::Args;
use super::steps::{Command, Counts, Step};
use super::totals::Totals;
use crate::workspace::Workspace;

/// What became of a step.
pub(super) struct Outcome {
    /// Its counts; a step that failed has at least one failed test.
    pub(super) totals: Totals,
    /// How long it took, building included.
    pub(super) took: Duration,
    /// Why it failed, when no test says so.
    pub(super) why: Option<String>,
}

impl Outcome {
    pub(super) fn passed(&self) -> bool {
        self.totals.failed == 0
    }
}

/// Runs a step. What keeps it from running is a failure of the step, so that the others still run.
pub(super) fn run(workspace: &Workspace, step: &Step, args: &Args) -> Outcome {
    println!("\n== {}: {}", step.name, step.about);
    let started = Instant::now();
    let mut totals = Totals::default();
    let ended = execute(command(workspace, step, args), &mut io::stdout(), &mut totals);
    let (totals, why) = judge(step.counts, totals, ended);
    Outcome { totals, took: started.elapsed(), why }
}

fn command(workspace: &Workspace, step: &Step, args: &Args) -> process::Command {
    let quick = step.quick.filter(|_| args.quick).unwrap_or_default();
    let fail_fast = args.fail_fast;
    let mut command = match step.command {
        Command::Cargo { args, harness } => {
            let mut command = workspace.cargo(args);
            command.args(quick);
            if step.counts == Counts::Harness && !fail_fast {
                command.arg("--no-fail-fast");
            }
            if !harness.is_empty() {
                command.arg("--").args(harness);
            }
            command
        }
        Command::Program { program, args, dir } => {
            let mut command = workspace.program(program, args, dir);
            command.args(quick);
            command
        }
    };
    if args.full {
        // Read by the tests themselves.
        command.env("TIDEMILL_FULL", "1");
    }
    command
}

/// Runs the command to its end. The child is always waited for, also when its output cannot be handed on.
fn execute(
    mut command: process::Command,
    to: &mut impl Write,
    totals: &mut Totals,
) -> io::Result<process::ExitStatus> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let copied = child.stdout.take().map_or(Ok(()), |output| tee(output, to, totals));
    let status = child.wait()?;
    copied.map(|()| status)
}

fn tee(from: impl Read, to: &mut impl Write, totals: &mut Totals) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        if let Some(counts) = Totals::parse(&String::from_utf8_lossy(&line)) {
            *totals += counts;
        }
        line.clear();
    }
    Ok(())
}

/// A step passes only if its process ended well *and* it counted what it was to count: a suite that silently shrank to
/// nothing is a failure.
fn judge(counts: Counts, totals: Totals, ended: io::Result<process::ExitStatus>) -> (Totals, Option<String>) {
    let why = match ended {
        Err(error) => Some(format!("did not run: {error}")),
        Ok(status) if !status.success() && totals.failed == 0 => Some(format!("ended with {status}")),
        Ok(_) if counts == Counts::Harness && totals.passed + totals.failed == 0 => {
            Some("ran no test".to_owned())
        }
        Ok(_) => None,
    };
    let mut totals = totals;
    if why.is_some() {
        totals.failed += 1;
    } else if counts == Counts::One {
        totals.passed += 1;
    }
    (totals, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> process::Command {
        let mut command = process::Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn judged(counts: Counts, script: &str) -> (Totals, Option<String>) {
        let mut totals = Totals::default();
        let ended = execute(shell(script), &mut io::sink(), &mut totals);
        judge(counts, totals, ended)
    }

    #[test]
    fn output_is_handed_on_byte_for_byte_and_counted() {
        let text =
            b"noise \xff\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\nno newline at the end";
        let (mut copy, mut totals) = (Vec::new(), Totals::default());
        tee(&text[..], &mut copy, &mut totals).unwrap();
        assert_eq!(copy, text);
        assert_eq!(totals, Totals { passed: 2, failed: 0, ignored: 1 });
    }

    #[test]
    fn a_plain_step_counts_as_one_test() {
        assert_eq!(judged(Counts::One, "exit 0").0, Totals { passed: 1, ..Totals::default() });
        let (totals, why) = judged(Counts::One, "exit 3");
        assert_eq!(totals, Totals { failed: 1, ..Totals::default() });
        assert!(why.unwrap().contains('3'));
    }

    #[test]
    fn a_harness_step_that_ends_badly_without_a_failed_test_has_failed() {
        let line = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured'";
        assert_eq!(judged(Counts::Harness, line), (Totals { passed: 2, ..Totals::default() }, None));
        let (totals, why) = judged(Counts::Harness, &format!("{line}; exit 101"));
        assert_eq!((totals.passed, totals.failed), (2, 1));
        assert!(why.is_some());
    }

    #[test]
    fn a_failed_test_is_not_counted_twice() {
        let line = "echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured'; exit 101";
        assert_eq!(judged(Counts::Harness, line), (Totals { passed: 2, failed: 1, ignored: 0 }, None));
    }

    #[test]
    fn a_harness_step_without_tests_has_failed() {
        assert_eq!(judged(Counts::Harness, "true").0.failed, 1);
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failure_with_a_reason() {
        let mut totals = Totals::default();
        let ended = execute(process::Command::new("/nonexistent/program"), &mut io::sink(), &mut totals);
        let (totals, why) = judge(Counts::One, totals, ended);
        assert_eq!(totals.failed, 1);
        assert!(why.unwrap().starts_with("did not run"));
    }
}
