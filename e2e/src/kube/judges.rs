//! What tools make of an object: kstatus (Flux and others) and Argo CD's health scripts.

use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::operator::checkout;
use crate::command::run;

const LIMIT: Duration = Duration::from_secs(30);

/// kstatus' verdict: InProgress, Current, Failed.
///
/// # Errors
/// The program is not there, or cannot read the object.
pub fn kstatus(object: &Value) -> Result<String> {
    let program = std::env::var_os("TIDEMILL_E2E_KSTATUS").context("TIDEMILL_E2E_KSTATUS names the judge")?;
    let done = run(&mut Command::new(program), object.to_string().as_bytes(), LIMIT)?.ok()?;
    Ok(done.stdout.split('\t').next().unwrap_or_default().to_owned())
}

/// The verdict of the Argo CD script in the checkout: Progressing, Healthy, Degraded, Suspended.
///
/// # Errors
/// The script fails.
pub fn argo(script: &str, object: &Value) -> Result<String> {
    let path = checkout(script);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let program =
        format!("obj = {}\nlocal health = (function()\n{text}\nend)()\nprint(health.status)\n", lua(object));
    let done = run(Command::new("lua5.1").arg("-"), program.as_bytes(), LIMIT)?.ok()?;
    Ok(done.stdout.trim().to_owned())
}

/// A value as Argo CD hands it to a script.
fn lua(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(lua).collect();
            format!("{{{}}}", all.join(","))
        }
        Value::Object(all) => {
            let all: Vec<String> =
                all.iter().map(|(key, value)| format!("[{}]={}", quoted(key), lua(value))).collect();
            format!("{{{}}}", all.join(","))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            0x20..=0x7e => quoted.push(char::from(byte)),
            _ => {
                let _infallible = write!(quoted, "\\{byte:03}");
            }
        }
    }
    quoted.push('"');
    quoted
}
