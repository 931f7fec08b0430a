//! Rules 1 and 2: deletion always comes to an end.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tidemill_e2e::kube::{
    CLUSTER, Namespace, Size, apply, cluster, consume_numbers, delete, kubectl, list, patch, produce_numbers,
    seen,
};

const LIMIT: Duration = Duration::from_secs(180);

#[test]
fn a_cluster_that_is_deleted_and_applied_again_has_its_records() -> Result<()> {
    let namespace = Namespace::with_cluster("again", Size::SMALL)?;
    let ns = namespace.name();
    namespace.create_topic(CLUSTER, "orders", 2)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=1000, LIMIT)?;
    delete(ns, "cluster", CLUSTER, LIMIT)?;
    tidemill_e2e::kube::until("the pods to go", LIMIT, || {
        let pods = list(ns, "pods", "tidemill.dev/cluster")?;
        Ok(pods.is_empty().then_some(()))
    })?;
    ensure!(
        list(ns, "persistentvolumeclaims", "")?.len() == 4,
        "volumes went with a Cluster that retains them"
    );
    apply(ns, &cluster(Size::SMALL).to_string())?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    let found = consume_numbers(ns, CLUSTER, "orders", LIMIT)?;
    ensure!(found == (1..=1000).collect(), "{} of 1000 records are there", found.len());
    seen("1 000 records, Cluster deleted, its 4 volumes kept, applied again: all records")
}

#[test]
fn a_cluster_that_says_so_takes_its_volumes_along() -> Result<()> {
    tidemill_e2e::kube::Operator::installed()?;
    let namespace = Namespace::create("volumes")?;
    let ns = namespace.name();
    let mut manifest = cluster(Size::SMALL);
    manifest["spec"]["storagePolicy"] = json!({ "whenDeleted": "Delete" });
    apply(ns, &manifest.to_string())?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    delete(ns, "cluster", CLUSTER, LIMIT)?;
    tidemill_e2e::kube::until("the volumes to go", LIMIT, || {
        let left = list(ns, "persistentvolumeclaims", "")?;
        ensure!(left.is_empty(), "{} claims are left", left.len());
        Ok(Some(()))
    })?;
    seen("whenDeleted: Delete: no claim is left")
}

#[test]
fn a_namespace_goes_away_also_with_the_cluster_dead() -> Result<()> {
    for dead in [false, true] {
        let namespace = Namespace::with_cluster("gone", Size::SMALL)?;
        let ns = namespace.name().to_owned();
        if dead {
            // Paused, so that the operator leaves the sets alone; then nothing of the data plane is left running.
            patch(&ns, "cluster", CLUSTER, &json!({ "spec": { "paused": true } }))?;
            for set in list(&ns, "statefulsets", "")? {
                let name = set["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                kubectl(&["scale", "statefulset", &name, "-n", &ns, "--replicas=0"])?.ok()?;
            }
            kubectl(&["delete", "pods", "--all", "-n", &ns, "--grace-period=0", "--force"])?.ok()?;
        }
        let took = namespace.delete(LIMIT)?;
        let how = if dead { "without a single pod" } else { "that serves" };
        seen(format!("namespace with a Cluster {how}: gone {:.1} s after its deletion", took.as_secs_f64()))?;
    }
    Ok(())
}
