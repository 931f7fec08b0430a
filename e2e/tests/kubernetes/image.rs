//! The image by itself: whoever starts it, it runs as nobody in particular and writes only where it is told to.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tidemill_e2e::kube::{Namespace, apply, exec, get, image, kubectl, seen, until};

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn the_image_runs_under_the_strictest_rules_and_keeps_records() -> Result<()> {
    let namespace = Namespace::create("image")?;
    let ns = namespace.name();
    let container = |name: &str, command: &[&str], args: &[&str]| {
        json!({
            "name": name,
            "image": image().unwrap_or_default(),
            "imagePullPolicy": "IfNotPresent",
            "command": command,
            "args": args,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
        })
    };
    let pod = |name: &str, container: serde_json::Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name },
            "spec": {
                "restartPolicy": "Never",
                "securityContext": {
                    "runAsNonRoot": true,
                    "fsGroup": 65532,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [container],
                "volumes": [{ "name": "data", "emptyDir": {} }],
            },
        })
        .to_string()
    };
    // No command: the image's own entry point.
    let mut all = container("tidemill", &[], &["up", "--data-dir=/data/cluster"]);
    all.as_object_mut().map(|all| all.remove("command"));
    apply(ns, &pod("all-in-one", all))?;
    apply(ns, &pod("operator", container("operator", &["/usr/bin/tidemill-operator"], &["--help"])))?;

    until("the operator's help", LIMIT, || {
        let pod = get(ns, "pod", "operator")?.unwrap_or_default();
        Ok((pod["status"]["phase"] == "Succeeded").then_some(()))
    })?;
    let run = |program: &[&str], input: &str| exec(ns, "all-in-one", program, input.as_bytes());
    until("a cluster in one pod", LIMIT, || {
        run(&["tidemill", "topic", "create", "orders", "--partitions=2"], "")?.ok().map(Some)
    })?;
    run(&["tidemill", "produce", "orders"], "one\ntwo\nthree\n")?.ok()?;
    let read = run(&["tidemill", "consume", "orders", "--until-end"], "")?.ok()?.stdout;
    let mut lines: Vec<&str> = read.lines().collect();
    lines.sort_unstable();
    ensure!(lines == ["one", "three", "two"], "{lines:?}");

    let logs = kubectl(&["logs", "-n", ns, "all-in-one"])?.ok()?.stdout;
    ensure!(!logs.contains("Read-only file system"), "{logs}");
    seen("3 records in and out of one pod: no root, no capability, nothing writable but /data")
}
