//! Pods die; records do not.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tidemill_e2e::kube::{CLUSTER, Job, Namespace, Size, get, kubectl, seen, until};

const LIMIT: Duration = Duration::from_secs(240);

#[test]
fn every_pod_is_killed_once_under_load() -> Result<()> {
    kill_all(Size::SMALL, 75)
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn every_pod_of_a_larger_cluster_is_killed_once_under_load() -> Result<()> {
    kill_all(Size::SAFE, 150)
}

fn kill_all(size: Size, seconds: u32) -> Result<()> {
    let namespace = Namespace::with_cluster("kills", size)?;
    let ns = namespace.name();
    let duration = format!("--duration={seconds}s");
    let verify = Job::start(ns, "verify", CLUSTER, &["verify", &duration, "--rate=500"], "")?;
    until("the load", LIMIT, || Ok((verify.phase()? == "Running").then_some(())))?;
    let (mut killed, mut loaded) = (0, 0);
    for role in ["broker", "bookie", "meta"] {
        for pod in namespace.pods(role)? {
            let old = uid(ns, &pod)?;
            loaded += usize::from(verify.phase()? == "Running");
            kubectl(&["delete", "pod", &pod, "-n", ns, "--grace-period=0", "--force"])?.ok()?;
            until(&format!("{pod} to come back"), LIMIT, || {
                let object = get(ns, "pod", &pod)?.context("not there yet")?;
                let ready = object["status"]["conditions"].as_array().is_some_and(|all| {
                    all.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
                });
                Ok((object["metadata"]["uid"] != old && ready).then_some(()))
            })?;
            killed += 1;
        }
    }
    let report = verify.finish(LIMIT)?;
    ensure!(loaded > 0, "the load ended before the first kill");
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    seen(format!("{killed} pods killed one by one, {loaded} of them under verify: {}", summary(&report)))
}

fn uid(namespace: &str, pod: &str) -> Result<String> {
    let object = get(namespace, "pod", pod)?.with_context(|| format!("{pod} is not there"))?;
    Ok(object["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}

/// The report of `tidemill verify` in one line.
pub(crate) fn summary(report: &str) -> String {
    let lines: Vec<&str> = report.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}
