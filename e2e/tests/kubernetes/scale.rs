//! More and fewer brokers and bookies, while records flow.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tidemill_e2e::kube::{CLUSTER, Job, Namespace, Size, kubectl, list, patch, seen, until};

use crate::kills::summary;

const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn one_bookie_and_one_broker_come_and_go_under_load() -> Result<()> {
    out_and_in(1, 75)
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn two_bookies_and_two_brokers_come_and_go_under_load() -> Result<()> {
    out_and_in(2, 240)
}

/// So many more of each, and back.
fn out_and_in(more: u8, seconds: u32) -> Result<()> {
    let namespace = Namespace::with_cluster("scale", Size::SMALL)?;
    let ns = namespace.name();
    let duration = format!("--duration={seconds}s");
    let verify = Job::start(ns, "verify", CLUSTER, &["verify", &duration, "--rate=500"], "")?;
    until("the load", LIMIT, || Ok((verify.phase()? == "Running").then_some(())))?;
    let bookies = |n: u8| {
        let pool = json!({ "name": "main", "replicas": n, "storage": { "size": "1Gi" } });
        patch(ns, "cluster", CLUSTER, &json!({ "spec": { "bookiePools": [pool] } }))
    };
    for (n, brokers) in [(3 + more, 1 + usize::from(more)), (3, 1)] {
        bookies(n)?;
        // As an autoscaler does it.
        kubectl(&["scale", "cluster", CLUSTER, "-n", ns, &format!("--replicas={brokers}")])?.ok()?;
        namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
        let (have, serving) = (namespace.pods("bookie")?.len(), namespace.pods("broker")?.len());
        ensure!(have == usize::from(n) && serving == brokers, "{have} bookies and {serving} brokers");
    }
    let claims = list(ns, "persistentvolumeclaims", "app.kubernetes.io/component=bookie")?;
    ensure!(claims.len() == 3, "{} claims of bookies are left", claims.len());
    let running = verify.phase()? == "Running";
    let report = verify.finish(LIMIT)?;
    seen(format!(
        "{more} bookies and {more} brokers more and fewer again, claims of retired bookies removed, under verify ({}): {}",
        if running { "to the end" } else { "which ended before the last step" },
        summary(&report)
    ))
}

#[test]
fn a_scale_in_that_is_not_safe_waits_and_says_so() -> Result<()> {
    let namespace = Namespace::with_cluster("unsafe", Size::SMALL)?;
    let ns = namespace.name();
    namespace.create_topic(CLUSTER, "orders", 1)?;
    let pool = json!({ "name": "main", "replicas": 2, "storage": { "size": "1Gi" } });
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "bookiePools": [pool] } }))?;
    let (reason, message) = until("the Cluster to say what it waits for", LIMIT, || {
        let object = tidemill_e2e::kube::get(ns, "cluster", CLUSTER)?.unwrap_or_default();
        let seen_it = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let ready = tidemill_e2e::kube::condition(&object, "Ready");
        Ok(ready
            .filter(|(status, ..)| seen_it && status == "False")
            .map(|(_, reason, message)| (reason, message)))
    })?;
    ensure!(namespace.pods("bookie")?.len() == 3, "a bookie is gone");
    seen(format!("two bookies for three copies: {reason}: {message}"))
}
