//! Clients of a Tidemill cluster that run in pods of the same namespace.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::kubectl::{apply, get, image, kubectl};
use super::wait::until;

/// A pod that runs `tidemill` once.
#[derive(Debug)]
pub struct Job {
    namespace: String,
    name: String,
}

impl Job {
    /// Starts `tidemill` with `args` against the client Service of `cluster`; `input` is the file /in/lines.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn start(namespace: &str, name: &str, cluster: &str, args: &[&str], input: &str) -> Result<Self> {
        let server = format!("http://{cluster}.{namespace}.svc:7450");
        let objects = json!({
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": { "name": name },
                    "data": { "lines": input },
                },
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": { "name": name },
                    "spec": {
                        "restartPolicy": "Never",
                        "automountServiceAccountToken": false,
                        "enableServiceLinks": false,
                        "securityContext": {
                            "runAsNonRoot": true,
                            "seccompProfile": { "type": "RuntimeDefault" },
                        },
                        "containers": [{
                            "name": "tidemill",
                            "image": image()?,
                            "imagePullPolicy": "IfNotPresent",
                            "args": args,
                            "env": [{ "name": "TIDEMILL_SERVER", "value": server }],
                            "securityContext": {
                                "allowPrivilegeEscalation": false,
                                "readOnlyRootFilesystem": true,
                                "capabilities": { "drop": ["ALL"] },
                            },
                            "volumeMounts": [{ "name": "in", "mountPath": "/in" }],
                        }],
                        "volumes": [{ "name": "in", "configMap": { "name": name } }],
                    },
                },
            ],
        });
        apply(namespace, &objects.to_string())?;
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Where the pod stands: its phase.
    ///
    /// # Errors
    /// It is gone.
    pub fn phase(&self) -> Result<String> {
        let pod = get(&self.namespace, "pod", &self.name)?.context("the client's pod is gone")?;
        Ok(pod["status"]["phase"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits for its end, removes it and answers what it printed.
    ///
    /// # Errors
    /// It failed, or is not done within `limit`.
    pub fn finish(self, limit: Duration) -> Result<String> {
        let ended = until(&format!("the end of {}", self.name), limit, || {
            let phase = self.phase()?;
            match phase.as_str() {
                "Succeeded" | "Failed" => Ok(Some(phase)),
                _ => bail!("it is {phase}: {}", self.trouble()?),
            }
        });
        let printed = kubectl(&["logs", "-n", &self.namespace, &self.name])?;
        let phase = ended.with_context(|| printed.stdout.clone() + &printed.stderr)?;
        ensure!(phase == "Succeeded", "{} failed:\n{}", self.name, printed.stdout);
        for kind in ["pod", "configmap"] {
            kubectl(&["delete", kind, &self.name, "-n", &self.namespace, "--wait=false"])?.ok()?;
        }
        Ok(printed.stdout)
    }

    fn trouble(&self) -> Result<Value> {
        let pod = get(&self.namespace, "pod", &self.name)?.context("the client's pod is gone")?;
        Ok(pod["status"]["containerStatuses"].clone())
    }
}

/// Produces the numbers from `from` to `to`, one per record, from a pod.
///
/// # Errors
/// Not all were acknowledged within `limit`.
pub fn produce_numbers(
    namespace: &str,
    cluster: &str,
    topic: &str,
    numbers: std::ops::RangeInclusive<u32>,
    limit: Duration,
) -> Result<()> {
    let name = format!("produce-{topic}-{}", numbers.start());
    let lines: String = numbers.map(|n| format!("{n}\n")).collect();
    Job::start(namespace, &name, cluster, &["produce", topic, "--file=/in/lines"], &lines)?
        .finish(limit)
        .map(drop)
}

/// Reads a topic to its end from a pod: all its numbers, each once.
///
/// # Errors
/// One is there twice, or the end was not reached within `limit`.
pub fn consume_numbers(
    namespace: &str,
    cluster: &str,
    topic: &str,
    limit: Duration,
) -> Result<BTreeSet<u32>> {
    let name = format!("consume-{topic}-{}", &uuid::Uuid::new_v4().simple().to_string()[..6]);
    let args = ["consume", topic, "--from=earliest", "--until-end"];
    let printed = Job::start(namespace, &name, cluster, &args, "")?.finish(limit)?;
    let mut found = BTreeSet::new();
    for line in printed.lines() {
        // Standard error stands in the same log.
        if let Ok(number) = line.parse() {
            ensure!(found.insert(number), "{number} is there twice");
        }
    }
    Ok(found)
}
