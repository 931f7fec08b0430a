//! `kubectl`, and what its answers mean.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::command::{Finished, run};

/// A call to the API server that takes longer has hung.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `kubectl` to its end, whatever that is.
///
/// # Errors
/// `KUBECONFIG` names no cluster, or kubectl does not end.
pub fn kubectl(args: &[&str]) -> Result<Finished> {
    kubectl_with(args, b"", LIMIT)
}

/// Runs `kubectl` with something on its standard input.
///
/// # Errors
/// `KUBECONFIG` names no cluster, or kubectl does not end within `limit`.
pub fn kubectl_with(args: &[&str], input: &[u8], limit: Duration) -> Result<Finished> {
    if std::env::var_os("KUBECONFIG").is_none() {
        bail!("KUBECONFIG names no cluster: `cargo xtask e2e` starts one and runs these tests");
    }
    run(Command::new("kubectl").args(args), input, limit)
        .with_context(|| format!("kubectl {}", args.join(" ")))
}

/// The image under test.
///
/// # Errors
/// `TIDEMILL_E2E_IMAGE` does not name it.
pub fn image() -> Result<String> {
    std::env::var("TIDEMILL_E2E_IMAGE").context("TIDEMILL_E2E_IMAGE names the image under test")
}

/// Another image of the same version, for updates and back.
///
/// # Errors
/// `TIDEMILL_E2E_NEXT_IMAGE` does not name one.
pub fn next_image() -> Result<String> {
    std::env::var("TIDEMILL_E2E_NEXT_IMAGE").context("TIDEMILL_E2E_NEXT_IMAGE names an image to update to")
}

/// An object, or nothing when it is not there.
///
/// # Errors
/// The API server did not say which.
pub fn get(namespace: &str, kind: &str, name: &str) -> Result<Option<Value>> {
    let done = kubectl(&["get", kind, name, "-n", namespace, "--ignore-not-found", "-o", "json"])?.ok()?;
    if done.stdout.trim().is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&done.stdout)?))
}

/// All objects of a kind that a selector chooses; an empty one chooses all.
///
/// # Errors
/// The API server did not answer.
pub fn list(namespace: &str, kind: &str, selector: &str) -> Result<Vec<Value>> {
    let mut args = vec!["get", kind, "-n", namespace, "-o", "json"];
    if !selector.is_empty() {
        args.extend(["-l", selector]);
    }
    let all: Value = serde_json::from_str(&kubectl(&args)?.ok()?.stdout)?;
    Ok(all["items"].as_array().cloned().unwrap_or_default())
}

/// Applies manifests the way a person does.
///
/// # Errors
/// They were refused.
pub fn apply(namespace: &str, manifests: &str) -> Result<()> {
    let done = kubectl_with(&["apply", "-n", namespace, "-f", "-"], manifests.as_bytes(), LIMIT)?;
    done.ok().map(drop)
}

/// Applies a manifest that has to be refused, and answers why it was.
///
/// # Errors
/// It was taken.
pub fn refused(namespace: &str, manifest: &str) -> Result<String> {
    let args = ["apply", "-n", namespace, "--validate=strict", "-f", "-"];
    let done = kubectl_with(&args, manifest.as_bytes(), LIMIT)?;
    ensure!(done.code != Some(0), "was taken: {}\n{manifest}", done.stdout);
    Ok(done.stderr)
}

/// Changes an object by a JSON merge patch.
///
/// # Errors
/// It was refused.
pub fn patch(namespace: &str, kind: &str, name: &str, change: &Value) -> Result<()> {
    let change = change.to_string();
    kubectl(&["patch", kind, name, "-n", namespace, "--type=merge", "-p", &change])?.ok().map(drop)
}

/// Deletes an object and waits until it is gone.
///
/// # Errors
/// It is still there after `limit`.
pub fn delete(namespace: &str, kind: &str, name: &str, limit: Duration) -> Result<()> {
    let timeout = format!("--timeout={}s", limit.as_secs());
    let args = ["delete", kind, name, "-n", namespace, "--ignore-not-found", &timeout];
    kubectl_with(&args, b"", limit + LIMIT)?.ok().map(drop)
}

/// Runs a program in a pod.
///
/// # Errors
/// It cannot be started there.
pub fn exec(namespace: &str, pod: &str, program: &[&str], input: &[u8]) -> Result<Finished> {
    let mut args = vec!["exec", "-i", "-n", namespace, pod, "--"];
    args.extend(program);
    kubectl_with(&args, input, LIMIT)
}

/// A condition of an object: status, reason and message.
#[must_use]
pub fn condition(object: &Value, kind: &str) -> Option<(String, String, String)> {
    let all = object["status"]["conditions"].as_array()?;
    let found = all.iter().find(|condition| condition["type"] == kind)?;
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

/// Whether the object is Ready for the generation that it has.
#[must_use]
pub fn ready(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && condition(object, "Ready").is_some_and(|(status, ..)| status == "True")
}
