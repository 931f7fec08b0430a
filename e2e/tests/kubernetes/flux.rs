//! Flux's source-controller and kustomize-controller, and a bucket from which they reconcile.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{apply, condition, get, kubectl, until};
use tidemill_e2e::request;

const LIMIT: Duration = Duration::from_secs(300);
const BUCKET: &str = "gitops";
/// The bucket's server takes changes of what is there from signed requests only, and believes any signature.
const SIGNED: &str = "?Signature=test";

/// The two controllers and a bucket.
pub(crate) struct Flux {
    processes: Vec<Child>,
    bucket: u16,
    folder: tempfile::TempDir,
}

impl Flux {
    /// Starts them, as the administrator.
    pub(crate) fn start(namespace: &str) -> Result<Self> {
        let tools = PathBuf::from(std::env::var_os("TIDEMILL_E2E_GITOPS").context(
            "TIDEMILL_E2E_GITOPS names the folder with Flux's controllers: `cargo xtask e2e --gitops` builds them",
        )?);
        kubectl(&["apply", "--server-side", "-f", &tools.join("crds").display().to_string()])?.ok()?;
        let mut flux = Self { processes: Vec::new(), bucket: free()?, folder: tempfile::tempdir()? };
        let bucket = flux.bucket.to_string();
        flux.run(
            Command::new(tools.join("venv/bin/moto_server")).args(["-H", "127.0.0.1", "-p", &bucket]),
            "bucket",
        )?;
        until("the bucket", LIMIT, || {
            let (code, body) =
                request(([127, 0, 0, 1], flux.bucket).into(), "PUT", &format!("/{BUCKET}"), "")?;
            ensure!(code == 200, "{code}: {body}");
            Ok(Some(()))
        })?;
        let storage = free()?;
        for name in ["source-controller", "kustomize-controller"] {
            let address = |port: u16| format!("127.0.0.1:{port}");
            let mut command = Command::new(tools.join(name));
            command
                .arg(format!("--metrics-addr={}", address(free()?)))
                .arg(format!("--health-addr={}", address(free()?)))
                .args(["--events-addr=", "--enable-leader-election=false"])
                .env("RUNTIME_NAMESPACE", namespace);
            if name == "source-controller" {
                let folder = flux.folder.path().join("storage");
                std::fs::create_dir(&folder)?;
                command
                    .arg(format!("--storage-path={}", folder.display()))
                    .arg(format!("--storage-addr={}", address(storage)))
                    .arg(format!("--storage-adv-addr={}", address(storage)));
            }
            flux.run(&mut command, name)?;
        }
        Ok(flux)
    }

    fn run(&mut self, command: &mut Command, name: &str) -> Result<()> {
        let log = std::fs::File::create(self.folder.path().join(format!("{name}.log")))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.processes.push(command.spawn().with_context(|| name.to_owned())?);
        Ok(())
    }

    /// Puts a file into the bucket.
    pub(crate) fn put(&self, name: &str, text: &str) -> Result<()> {
        let (code, body) =
            request(([127, 0, 0, 1], self.bucket).into(), "PUT", &format!("/{BUCKET}/{name}{SIGNED}"), text)?;
        ensure!(code == 200, "{code}: {body}");
        Ok(())
    }

    /// Takes a file out of the bucket.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        let (code, body) = request(
            ([127, 0, 0, 1], self.bucket).into(),
            "DELETE",
            &format!("/{BUCKET}/{name}{SIGNED}"),
            "",
        )?;
        ensure!(code == 204, "{code}: {body}");
        Ok(())
    }

    /// Tells the controllers to reconcile a folder of the bucket.
    pub(crate) fn point(&self, ns: &str, path: &str) -> Result<()> {
        let objects = json!({
            "apiVersion": "v1",
            "kind": "List",
            "items": [
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": { "name": BUCKET },
                    "stringData": { "accesskey": "access", "secretkey": "secret-key" },
                },
                {
                    "apiVersion": "source.toolkit.fluxcd.io/v1",
                    "kind": "Bucket",
                    "metadata": { "name": BUCKET },
                    "spec": {
                        "provider": "generic",
                        "bucketName": BUCKET,
                        "endpoint": format!("127.0.0.1:{}", self.bucket),
                        "insecure": true,
                        "interval": "1h",
                        "secretRef": { "name": BUCKET },
                    },
                },
                {
                    "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
                    "kind": "Kustomization",
                    "metadata": { "name": BUCKET },
                    "spec": {
                        "interval": "1h",
                        "retryInterval": "10s",
                        "timeout": "4m",
                        "prune": true,
                        "wait": true,
                        "path": path,
                        "targetNamespace": ns,
                        "sourceRef": { "kind": "Bucket", "name": BUCKET },
                    },
                },
            ],
        });
        apply(ns, &objects.to_string())
    }

    /// Asks for a reconciliation of both and waits for its verdict; answers its message.
    pub(crate) fn synced(&self, ns: &str, well: bool) -> Result<String> {
        let mut revision = Value::Null;
        for kind in ["buckets.source.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io"] {
            let token = uuid::Uuid::new_v4().to_string();
            let annotation = format!("reconcile.fluxcd.io/requestedAt={token}");
            kubectl(&["annotate", "--overwrite", "-n", ns, kind, BUCKET, &annotation])?.ok()?;
            let bucket = kind.starts_with("buckets");
            let object = until(&format!("{kind} to be {well}"), LIMIT, || {
                let object = get(ns, kind, BUCKET)?.context("it is gone")?;
                let handled = object["status"]["lastHandledReconcileAt"] == token.as_str();
                let verdict = condition(&object, "Ready").context("no verdict yet")?;
                let fits = if bucket || well { verdict.0 == "True" } else { verdict.0 == "False" };
                let newest = bucket || object["status"]["lastAttemptedRevision"] == revision;
                ensure!(handled && fits && newest, "{verdict:?}\n{}", self.logs());
                Ok(Some(object))
            })?;
            if bucket {
                revision = object["status"]["artifact"]["revision"].clone();
            } else {
                return Ok(condition(&object, "Ready").unwrap_or_default().2);
            }
        }
        unreachable!("the second kind answers")
    }

    fn logs(&self) -> String {
        let mut text = String::new();
        for name in ["bucket", "source-controller", "kustomize-controller"] {
            let log =
                std::fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            text.push_str(&format!("--- {name}\n{}\n", lines[lines.len().saturating_sub(5)..].join("\n")));
        }
        text
    }
}

impl Drop for Flux {
    fn drop(&mut self) {
        for process in &mut self.processes {
            drop(process.kill());
            drop(process.wait());
        }
    }
}

fn free() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
