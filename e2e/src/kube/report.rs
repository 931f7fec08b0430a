//! What a test has seen, for the report at the end of a run.

use std::env;
use std::fs::File;
use std::io::Write;
use std::thread;

use anyhow::{Context, Result};
use serde_json::json;

/// Notes a line under the running test's name.
///
/// # Errors
/// The report's file cannot be written.
pub fn seen(text: impl AsRef<str>) -> Result<()> {
    let text = text.as_ref();
    let thread = thread::current();
    let test = thread.name().unwrap_or("setup");
    let mut line = json!({ "test": test, "text": text }).to_string();
    line.push('\n');
    if let Some(path) = env::var_os("TIDEMILL_E2E_REPORT") {
        let mut file = File::options().create(true).append(true).open(&path).context("file of the report")?;
        file.write_all(line.as_bytes())?;
    }
    std::io::stdout().write_all(format!("{test}: {text}\n").as_bytes())?;
    Ok(())
}
