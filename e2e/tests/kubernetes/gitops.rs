//! A GitOps pipeline: Flux's two controllers reconcile the example out of a bucket.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    CLUSTER, Namespace, Operator, Size, apply, cluster, condition, consume_numbers, get, kubectl,
    produce_numbers, ready, seen, topic, until,
};
use tidemill_e2e::request;

const LIMIT: Duration = Duration::from_secs(300);
const BUCKET: &str = "gitops";

#[test]
#[ignore = "builds and runs Flux: cargo xtask e2e --gitops"]
fn a_bucket_is_applied_changed_pruned_and_reverted() -> Result<()> {
    Operator::installed()?;
    let namespace = Namespace::create("gitops")?;
    let ns = namespace.name();
    let flux = Flux::start(ns)?;
    flux.put("cluster.yaml", &cluster(Size::SMALL))?;
    flux.put("orders.yaml", &topic("orders", 1))?;
    flux.point(ns)?;
    flux.synced(ns, true)?;
    ensure!(get(ns, "topic", "orders")?.is_some_and(|object| ready(&object)), "Flux was satisfied too early");
    produce_numbers(ns, CLUSTER, "orders", 1..=500, LIMIT)?;

    flux.put("orders.yaml", &topic("orders", 2))?;
    flux.synced(ns, true)?;
    let changed = get(ns, "topic", "orders")?.context("the Topic is gone")?;
    ensure!(changed["spec"]["partitions"] == 2 && ready(&changed), "{}", changed["status"]);

    flux.remove("orders.yaml")?;
    flux.synced(ns, true)?;
    until("the Topic to be pruned", LIMIT, || Ok(get(ns, "topic", "orders")?.is_none().then_some(())))?;
    flux.put("orders.yaml", &topic("orders", 2))?;
    flux.synced(ns, true)?;
    let found = consume_numbers(ns, CLUSTER, "orders", LIMIT)?;
    ensure!(found == (1..=500).collect(), "{} of 500 records after prune and revert", found.len());

    flux.put("orders.yaml", &topic("orders", 1))?;
    let says = flux.synced(ns, false)?;
    ensure!(says.contains("grow"), "Flux says {says}");
    flux.put("orders.yaml", &topic("orders", 2))?;
    flux.synced(ns, true)?;

    let before = version(ns)?;
    let rounds = 20;
    for _ in 0..rounds {
        flux.synced(ns, true)?;
    }
    ensure!(version(ns)? == before, "forced syncs wrote something");
    seen(format!(
        "applied from a bucket, grown, pruned and brought back with its records, refused with our message ({says}), {rounds} forced syncs without a write"
    ))
}

fn version(namespace: &str) -> Result<Vec<Value>> {
    let mut versions = Vec::new();
    for (kind, name) in [("cluster", CLUSTER), ("topic", "orders"), ("statefulset", "tide-bookie-main")] {
        let object = get(namespace, kind, name)?.with_context(|| format!("{kind} {name} is gone"))?;
        versions.push(object["metadata"]["resourceVersion"].clone());
    }
    Ok(versions)
}

/// The two controllers and a bucket.
struct Flux {
    processes: Vec<Child>,
    bucket: u16,
    folder: tempfile::TempDir,
}

impl Flux {
    fn start(namespace: &str) -> Result<Self> {
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

    fn put(&self, name: &str, object: &Value) -> Result<()> {
        let (code, body) = request(
            ([127, 0, 0, 1], self.bucket).into(),
            "PUT",
            &format!("/{BUCKET}/{name}"),
            &object.to_string(),
        )?;
        ensure!(code == 200, "{code}: {body}");
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let (code, body) =
            request(([127, 0, 0, 1], self.bucket).into(), "DELETE", &format!("/{BUCKET}/{name}"), "")?;
        ensure!(code == 204, "{code}: {body}");
        Ok(())
    }

    /// Tells the controllers what to reconcile.
    fn point(&self, ns: &str) -> Result<()> {
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
                        "targetNamespace": ns,
                        "sourceRef": { "kind": "Bucket", "name": BUCKET },
                    },
                },
            ],
        });
        apply(ns, &objects.to_string())
    }

    /// Asks for a reconciliation of both and waits for its verdict; answers its message.
    fn synced(&self, ns: &str, well: bool) -> Result<String> {
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
