//! Standard output: data only. A closed pipe (`| head`) ends quietly.

use std::io::{self, Write};

use tidemill_types::ErrorCode;

use crate::error::CliError;

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    write_to(&mut io::stdout().lock(), text.as_bytes())
}

/// Writes and flushes; a closed pipe ends the process with success, as other tools do.
pub(crate) fn write_to(out: &mut impl Write, bytes: &[u8]) -> Result<(), CliError> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => Err(CliError::new("standard output", e.to_string(), ErrorCode::Internal)),
    }
}

/// A line for people on standard error.
#[expect(clippy::print_stderr, reason = "what people read while a command runs")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
