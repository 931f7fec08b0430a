//! The roles in pods, put together by hand: what a Cluster does, without the operator.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    Forward, Namespace, apply, consume_numbers, get, image, list, produce_numbers, seen, until,
};
use tidemill_e2e::kube::{Job, kubectl};
use tidemill_proto::meta::{InitializeRequest, meta_client::MetaClient};

const LIMIT: Duration = Duration::from_secs(180);

#[test]
fn quorum_bookies_and_broker_find_each_other_by_name() -> Result<()> {
    let namespace = Namespace::create("roles")?;
    let ns = namespace.name();
    let voters: Vec<String> = (0..3).map(|n| address(ns, "meta", &format!("meta-{n}"))).collect();
    let meta = format!("--meta={}", voters.join(","));
    let sets = [
        role(ns, "meta", 3, &["--data-dir=/data/meta"])?,
        role(ns, "bookie", 3, &["--data-dirs=/data/bookie", &meta])?,
        role(ns, "broker", 1, &[&meta])?,
    ];
    for objects in &sets {
        apply(ns, &objects.to_string())?;
    }
    // A quorum answers before it is one: peers must find each other first.
    until("the members to run", LIMIT, || {
        let pods = list(ns, "pods", "role=meta")?;
        let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
        ensure!(running == 3, "{running} of 3 run");
        Ok(Some(()))
    })
    .with_context(|| namespace.describe())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let forward = Forward::start(ns, "pod/meta-0")?;
    let cluster = uuid::Uuid::new_v4().as_bytes().to_vec();
    until("the quorum to be made", LIMIT, || {
        runtime.block_on(async {
            let channel = tonic::transport::Endpoint::new(forward.url())?.connect().await?;
            let mut stub = MetaClient::new(channel);
            stub.initialize(InitializeRequest { cluster: cluster.clone(), voters: voters.clone() }).await?;
            Ok(Some(()))
        })
    })
    .with_context(|| namespace.describe())?;
    until("all pods to be ready", LIMIT, || {
        for (name, wanted) in [("meta", 3), ("bookie", 3), ("broker", 1)] {
            let set = get(ns, "statefulset", name)?.context("no set")?;
            ensure!(set["status"]["readyReplicas"] == wanted, "{name}: {}", set["status"]);
        }
        Ok(Some(()))
    })
    .with_context(|| namespace.describe())?;

    Job::start(ns, "create", "broker", &["topic", "create", "orders", "--partitions=4"], "")?
        .finish(LIMIT)?;
    produce_numbers(ns, "broker", "orders", 1..=2000, LIMIT)?;
    // All pods at once: nobody may need another one to be ready first.
    kubectl(&["delete", "pods", "-n", ns, "-l", "role", "--grace-period=0", "--force"])?.ok()?;
    let found = consume_numbers(ns, "broker", "orders", LIMIT)?;
    ensure!(found == (1..=2000).collect(), "{} of 2000 records", found.len());
    seen("3 + 3 + 1 pods by hand: 2 000 records, all pods killed at once, all 2 000 are there")
}

fn address(ns: &str, set: &str, pod: &str) -> String {
    format!("{pod}.{set}.{ns}.svc.cluster.local:7450")
}

/// A headless Service and a StatefulSet of a role.
fn role(ns: &str, name: &str, replicas: u8, more: &[&str]) -> Result<Value> {
    let mut args = vec![
        name.to_owned(),
        "--listen=0.0.0.0:7450".to_owned(),
        "--http=0.0.0.0:7451".to_owned(),
        format!("--advertise={}", address(ns, name, "$(POD_NAME)")),
        "--name=$(POD_NAME)".to_owned(),
    ];
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    let labels = json!({ "role": name });
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": 7451 }, "periodSeconds": 2, "timeoutSeconds": 5 });
    Ok(json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": { "name": name },
                "spec": {
                    "clusterIP": "None",
                    "publishNotReadyAddresses": true,
                    "selector": labels,
                    "ports": [{ "name": "grpc", "port": 7450 }],
                },
            },
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": { "name": name },
                "spec": {
                    "replicas": replicas,
                    "serviceName": name,
                    "podManagementPolicy": "Parallel",
                    "selector": { "matchLabels": labels },
                    "template": {
                        "metadata": { "labels": labels },
                        "spec": {
                            "automountServiceAccountToken": false,
                            "enableServiceLinks": false,
                            "terminationGracePeriodSeconds": 30,
                            "securityContext": {
                                "runAsNonRoot": true,
                                "fsGroup": 65532,
                                "seccompProfile": { "type": "RuntimeDefault" },
                            },
                            "containers": [{
                                "name": name,
                                "image": image()?,
                                "imagePullPolicy": "IfNotPresent",
                                "args": args,
                                "env": [{
                                    "name": "POD_NAME",
                                    "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } },
                                }],
                                "readinessProbe": probe("/readyz"),
                                "livenessProbe": probe("/livez"),
                                "securityContext": {
                                    "allowPrivilegeEscalation": false,
                                    "readOnlyRootFilesystem": true,
                                    "capabilities": { "drop": ["ALL"] },
                                },
                                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
                            }],
                        },
                    },
                    "volumeClaimTemplates": [{
                        "metadata": { "name": "data" },
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": { "requests": { "storage": "1Gi" } },
                        },
                    }],
                },
            },
        ],
    }))
}
