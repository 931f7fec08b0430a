//! What a run of `produce` comes to: success only when every record of the input was acknowledged.

use tidemill_client::{Counters, DeliveryError, NotDelivered};
use tidemill_types::ErrorCode;

use crate::error::{CliError, Exit};

/// Why nothing more was taken from the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It ended.
    End,
    /// A signal.
    Interrupted,
    /// A record was not delivered.
    Failed,
    /// This line was refused.
    Line { line: u64, why: String, code: ErrorCode },
    /// The input broke.
    Input(String),
}

/// Records by outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) acked: u64,
    pub(super) not_written: u64,
    pub(super) unknown: u64,
}

impl Counts {
    /// Of a producer that has decided everything; what is undecided all the same counts as unknown.
    pub(super) fn new(c: Counters) -> Self {
        let unknown = c.sent.saturating_sub(c.acked).saturating_sub(c.not_written);
        Self { sent: c.sent, acked: c.acked, not_written: c.not_written, unknown }
    }
}

/// The error, or success.
pub(super) fn verdict(
    topic: &str,
    stop: &Stop,
    lines: u64,
    counts: Counts,
    first: Option<&DeliveryError>,
) -> Result<(), CliError> {
    let Counts { acked, not_written, unknown, .. } = counts;
    let mut code = match (first, unknown) {
        (_, 1..) => ErrorCode::OutcomeUnknown,
        (Some(e), 0) => {
            e.code.filter(|_| e.kind == NotDelivered::NotWritten).unwrap_or(ErrorCode::NotWritten)
        }
        (None, 0) => ErrorCode::NotWritten,
    };
    let mut why = match stop {
        Stop::End if not_written + unknown == 0 => return Ok(()),
        Stop::End => String::new(),
        Stop::Failed => format!("stopped after line {lines}; "),
        Stop::Interrupted => format!("interrupted after line {lines}; "),
        Stop::Input(e) => format!("the input failed after line {lines}: {e}; "),
        Stop::Line { line, why: reason, code: of_line } => {
            if unknown == 0 {
                code = *of_line;
            }
            format!("line {line}: {reason}; ")
        }
    };
    why.push_str(&format!(
        "{acked} records acknowledged, {not_written} not written, {unknown} of unknown outcome"
    ));
    if let Some(e) = first {
        why.push_str(&format!("; first failure: {e}"));
    }
    let mut error =
        CliError::new(format!("produce to {topic}"), why, code).help(help(stop, not_written, unknown));
    if unknown == 0 {
        // Every record's fate is known: it failed, whatever the code's class says.
        error = error.exit(Exit::Failed);
    }
    if *stop == Stop::Interrupted {
        error = error.exit(Exit::Interrupted);
    }
    Err(error)
}

fn help(stop: &Stop, not_written: u64, unknown: u64) -> String {
    if unknown > 0 {
        return "records of unknown outcome may be in the topic: sending them again can write them twice; look with \
                `tidemill consume`"
            .to_owned();
    }
    match stop {
        Stop::Line { line, .. } if not_written == 0 => {
            format!("lines before {line} were written; correct the input and go on from line {line}")
        }
        Stop::Interrupted if not_written == 0 => "the rest of the input was not sent".to_owned(),
        _ => "`tidemill cluster status` shows what is missing; send the records that were not written again"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(acked: u64, not_written: u64, unknown: u64) -> Counts {
        Counts { sent: acked + not_written + unknown, acked, not_written, unknown }
    }

    fn failure(kind: NotDelivered, code: Option<ErrorCode>) -> Option<DeliveryError> {
        Some(DeliveryError { kind, code, message: "write to t/0: no".into() })
    }

    #[test]
    fn success_only_when_all_are_acknowledged() {
        assert!(verdict("t", &Stop::End, 3, counts(3, 0, 0), None).is_ok());
        for (not_written, unknown) in [(1, 0), (0, 1)] {
            assert!(verdict("t", &Stop::End, 3, counts(2, not_written, unknown), None).is_err());
        }
        for stop in [Stop::Interrupted, Stop::Failed, Stop::Input("x".into())] {
            assert!(verdict("t", &stop, 3, counts(3, 0, 0), None).is_err());
        }
    }

    #[test]
    fn unknown_outcomes_have_their_own_exit_code() {
        let e = failure(NotDelivered::Unknown, None);
        let e = verdict("t", &Stop::Failed, 9, counts(5, 3, 1), e.as_ref()).unwrap_err();
        assert_eq!(e.exit, Exit::TimedOut);
        assert_eq!(
            e.to_string().lines().next().unwrap(),
            "error: produce to t: stopped after line 9; 5 records acknowledged, 3 not written, 1 of unknown outcome; \
             first failure: write to t/0: no [outcome unknown] (OUTCOME_UNKNOWN)"
        );
    }

    #[test]
    fn known_outcomes_are_plain_failures() {
        let e = failure(NotDelivered::NotWritten, Some(ErrorCode::DiskFull));
        let e = verdict("t", &Stop::Failed, 9, counts(5, 4, 0), e.as_ref()).unwrap_err();
        assert_eq!((e.exit, e.code.as_str()), (Exit::Failed, "DISK_FULL"));
        let line = Stop::Line { line: 7, why: "bad".into(), code: ErrorCode::InvalidArgument };
        let e = verdict("t", &line, 6, counts(6, 0, 0), None).unwrap_err();
        assert_eq!((e.exit, e.code.as_str()), (Exit::Failed, "INVALID_ARGUMENT"));
        assert!(e.why.starts_with("line 7: bad; 6 records acknowledged"));
        assert!(e.help.unwrap().contains("lines before 7 were written"));
        // Not all of them were.
        let e = verdict("t", &line, 6, counts(5, 1, 0), None).unwrap_err();
        assert!(!e.help.unwrap().contains("lines before"));
    }

    #[test]
    fn a_signal_wins_over_the_rest() {
        let e = verdict("t", &Stop::Interrupted, 6, counts(4, 1, 1), None).unwrap_err();
        assert_eq!(e.exit, Exit::Interrupted);
    }

    #[test]
    fn what_is_undecided_counts_as_unknown() {
        let c = Counters { sent: 10, acked: 6, not_written: 1, unknown: 0, batch_retries: 0 };
        assert_eq!(Counts::new(c), counts(6, 1, 3));
    }
}
