//! Volumes and the quorum grow, and an autoscaler owns the number of brokers.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    CLUSTER, Job, Namespace, Size, apply, cluster, condition, get, kubectl, list, patch, ready, seen, until,
};

use crate::kills::summary;
use crate::merge::merged;

const LIMIT: Duration = Duration::from_secs(300);

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn volumes_grow_and_no_pod_goes() -> Result<()> {
    let namespace = Namespace::with_cluster("volumes-grow", Size::SMALL)?;
    let ns = namespace.name();
    let pods = uids(ns)?;
    let pool = json!({ "name": "main", "replicas": 3, "storage": { "size": "2Gi" } });
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "bookiePools": [pool] } }))?;
    until("the Cluster to say that volumes grow", LIMIT, || {
        let object = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
        let (_, reason, message) = condition(&object, "StorageReady").context("no StorageReady")?;
        ensure!(reason == "Growing", "{reason}: {message}");
        Ok(Some(()))
    })?;
    until("all claims to ask for more", LIMIT, || {
        let claims = claims(ns)?;
        let asked = |claim: &&Value| claim["spec"]["resources"]["requests"]["storage"] == "2Gi";
        let asked = claims.iter().filter(asked).count();
        ensure!(asked == 3 && claims.len() == 3, "{asked} of {} do", claims.len());
        Ok(Some(()))
    })?;
    let object = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
    ensure!(!ready(&object), "Ready before the storage system has grown anything");
    resize(ns, "2Gi")?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    let set = get(ns, "statefulset", &format!("{CLUSTER}-bookie-main"))?.context("no set")?;
    let size = &set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"];
    ensure!(size == "2Gi", "the set makes claims of {size}");
    ensure!(uids(ns)? == pods, "a pod was replaced");
    seen("3 volumes grown from 1Gi to 2Gi, the set made anew around its pods, no pod replaced")
}

/// The resizer of a storage system that has one.
fn resize(ns: &str, size: &str) -> Result<()> {
    for claim in claims(ns)? {
        let name = claim["metadata"]["name"].as_str().context("a claim without a name")?;
        let volume = claim["spec"]["volumeName"].as_str().context("the claim is not bound")?;
        let capacity = json!({ "capacity": { "storage": size } });
        patch(ns, "persistentvolume", volume, &json!({ "spec": capacity }))?;
        let change = json!({ "status": capacity }).to_string();
        let args = ["patch", "pvc", name, "-n", ns, "--subresource=status", "--type=merge", "-p", &change];
        kubectl(&args)?.ok()?;
    }
    Ok(())
}

fn claims(ns: &str) -> Result<Vec<Value>> {
    list(ns, "persistentvolumeclaims", "app.kubernetes.io/component=bookie")
}

fn uids(ns: &str) -> Result<Vec<Value>> {
    Ok(list(ns, "pods", "tidemill.dev/cluster")?.iter().map(|pod| pod["metadata"]["uid"].clone()).collect())
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn the_quorum_grows_from_one_to_three_to_five_under_load() -> Result<()> {
    let namespace = Namespace::with_cluster("quorum", Size { bookies: 4, brokers: 2, ..Size::SMALL })?;
    let ns = namespace.name();
    let id = |object: &Value| object["status"]["clusterId"].clone();
    let before = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
    let verify = Job::start(ns, "verify", CLUSTER, &["verify", "--duration=240s", "--rate=300"], "")?;
    until("the load", LIMIT, || Ok((verify.phase()? == "Running").then_some(())))?;
    for count in [3, 5] {
        patch(ns, "cluster", CLUSTER, &json!({ "spec": { "meta": { "replicas": count } } }))?;
        let object = namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
        let members = object["status"]["members"].as_array().context("no members")?;
        let voters = members.iter().filter(|member| member["role"] == "meta").count();
        let (_, _, says) = condition(&object, "QuorumReady").context("no QuorumReady")?;
        ensure!(voters == count && says == format!("{count} voters"), "{voters} voters, {says}: {members:?}");
        ensure!(id(&object) == id(&before), "another cluster: {} after {}", id(&object), id(&before));
    }
    // The first one is one of five now, and may be away.
    let first = format!("{CLUSTER}-meta-0");
    kubectl(&["delete", "pod", &first, "-n", ns, "--grace-period=0", "--force"])?.ok()?;
    namespace.create_topic(CLUSTER, "without-the-first", 1)?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    let running = verify.phase()? == "Running";
    let report = verify.finish(LIMIT)?;
    seen(format!(
        "the quorum grown from 1 to 3 to 5 voters, its first one killed, under verify ({}): {}",
        if running { "to the end" } else { "which ended before the last step" },
        summary(&report)
    ))
}

#[test]
fn an_autoscaler_owns_the_number_of_brokers() -> Result<()> {
    // A manifest that does not name brokers at all (rule 22).
    let unnamed = merged(&cluster(Size::SMALL), &json!({ "spec": { "brokers": null } }));
    let namespace = Namespace::with("autoscaler", &unnamed)?;
    let ns = namespace.name();
    ensure!(namespace.pods("broker")?.len() == 3, "the default is 3 brokers");
    // Bounds are kept without any figures of load.
    for (least, most, wanted) in [(1, 2, 2), (4, 5, 4)] {
        apply(ns, &autoscaler(least, most).to_string())?;
        until(&format!("{wanted} brokers"), LIMIT, || {
            let brokers = namespace.pods("broker")?.len();
            let scaler = get(ns, "horizontalpodautoscaler", CLUSTER)?.unwrap_or_default();
            ensure!(brokers == wanted, "{brokers} brokers: {}", scaler["status"]);
            Ok(Some(()))
        })?;
        namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    }
    // Applying the manifest again leaves what the autoscaler has set.
    apply(ns, &unnamed.to_string())?;
    let object = namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    ensure!(object["spec"]["brokers"]["replicas"] == 4, "{}", object["spec"]);
    ensure!(object["status"]["replicas"] == 4, "{}", object["status"]);
    seen(
        "a Cluster without `brokers` in its manifest: 3 by default, 2 and 4 by a HorizontalPodAutoscaler over /scale, 4 after applying the manifest again",
    )
}

fn autoscaler(least: u8, most: u8) -> Value {
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": CLUSTER },
        "spec": {
            "scaleTargetRef": { "apiVersion": "tidemill.dev/v1alpha1", "kind": "Cluster", "name": CLUSTER },
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [{
                "type": "Resource",
                "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 60 } },
            }],
            "behavior": { "scaleDown": { "stabilizationWindowSeconds": 0 } },
        },
    })
}
