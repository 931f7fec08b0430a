//! What the user sees when something failed, and the exit code that scripts see.

use std::fmt;

use tidemill_types::{ErrorCode, StatusClass};

/// Exit codes; stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It failed; stderr says what, why and what to do.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// No such thing.
    NotFound = 3,
    /// A conflict or precondition.
    Conflict = 4,
    /// Timed out; the outcome is unknown.
    TimedOut = 5,
    /// Interrupted.
    Interrupted = 130,
}

/// `error: <what failed>: <why> (<code>)`, then `help: <what to do>`.
#[derive(Clone, Debug)]
pub(crate) struct CliError {
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) code: String,
    pub(crate) help: Option<String>,
    pub(crate) exit: Exit,
}

impl CliError {
    /// A failure with a code of the table.
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>, code: ErrorCode) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            code: code.wire().to_owned(),
            help: None,
            exit: exit_of(code),
        }
    }

    /// An exit code and nothing to say: the output said it.
    pub(crate) fn quiet(exit: Exit) -> Self {
        Self::new("", "", ErrorCode::Internal).exit(exit)
    }

    /// Whether there is anything to say.
    pub(crate) fn is_quiet(&self) -> bool {
        self.what.is_empty() && self.why.is_empty()
    }

    /// Wrong usage or configuration.
    pub(crate) fn usage(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(what, why, ErrorCode::InvalidArgument).exit(Exit::Usage)
    }

    /// Adds what to do.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Changes the exit code.
    #[must_use]
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

/// A role that does not start: what its configuration or the rights of its directory can mend is wrong usage, a held
/// directory is a conflict.
pub(crate) fn start_failed(role: &str, why: &str, code: ErrorCode) -> CliError {
    let exit = if code == ErrorCode::Conflict { Exit::Conflict } else { Exit::Usage };
    let error = CliError::new(role, why, code).exit(exit);
    match code {
        ErrorCode::BadDirectory => {
            error.help("give the directory to the user that runs this, or choose another one")
        }
        _ => error,
    }
}

fn exit_of(code: ErrorCode) -> Exit {
    match code {
        ErrorCode::OutcomeUnknown => Exit::TimedOut,
        ErrorCode::UnknownConfigKey | ErrorCode::InvalidTopicName | ErrorCode::InvalidGroupName => {
            Exit::Usage
        }
        ErrorCode::UnknownPartition => Exit::NotFound,
        _ => match code.class() {
            StatusClass::NotFound => Exit::NotFound,
            StatusClass::AlreadyExists | StatusClass::FailedPrecondition | StatusClass::Aborted => {
                Exit::Conflict
            }
            StatusClass::DeadlineExceeded => Exit::TimedOut,
            _ => Exit::Failed,
        },
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The reason may be an error's text, which ends with its code.
        let end = format!("({})", self.code);
        let why = self.why.strip_suffix(&end).map_or(self.why.as_str(), str::trim_end);
        write!(f, "error: {}: {why} {end}", self.what)?;
        if let Some(help) = &self.help {
            write!(f, "\nhelp: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CliError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_and_exit_codes() {
        let e = CliError::new("topic \"a\"", "no such topic", ErrorCode::UnknownTopic).help("create it");
        assert_eq!(e.to_string(), "error: topic \"a\": no such topic (UNKNOWN_TOPIC)\nhelp: create it");
        assert_eq!(e.exit, Exit::NotFound);
        let e = CliError::new(
            "produce to t",
            "1 not written; first failure: no (UNKNOWN_TOPIC)",
            ErrorCode::UnknownTopic,
        );
        assert_eq!(e.to_string(), "error: produce to t: 1 not written; first failure: no (UNKNOWN_TOPIC)");
        assert_eq!(exit_of(ErrorCode::TopicExists), Exit::Conflict);
        assert_eq!(exit_of(ErrorCode::OutcomeUnknown), Exit::TimedOut);
        assert_eq!(exit_of(ErrorCode::DiskFull), Exit::Failed);
    }
}
