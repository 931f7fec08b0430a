//! The operator dies, or there are two of it.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tidemill_e2e::kube::{
    CLUSTER, Job, Namespace, Operator, Size, condition, get, kubectl, list, patch, ready, seen, until,
};

use crate::kills::summary;

const LIMIT: Duration = Duration::from_secs(300);

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn an_operator_that_is_killed_again_and_again_finishes_a_scale_in() -> Result<()> {
    let namespace = Namespace::with_cluster("restarts", Size { bookies: 5, ..Size::SMALL })?;
    let ns = namespace.name();
    let verify = Job::start(ns, "verify", CLUSTER, &["verify", "--duration=120s", "--rate=300"], "")?;
    until("the load", LIMIT, || Ok((verify.phase()? == "Running").then_some(())))?;
    let pool = json!({ "name": "main", "replicas": 3, "storage": { "size": "1Gi" } });
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "bookiePools": [pool] } }))?;
    let mut kills = 0;
    until("the scale-in", LIMIT * 2, || {
        let object = get(ns, "cluster", CLUSTER)?.unwrap_or_default();
        if ready(&object) && namespace.pods("bookie")?.len() == 3 {
            return Ok(Some(()));
        }
        kubectl(&[
            "delete",
            "pods",
            "--all",
            "-n",
            Operator::namespace(),
            "--grace-period=0",
            "--force",
            "--wait=false",
        ])?
        .ok()?;
        kills += 1;
        // It gets to do something between two deaths.
        kubectl(&[
            "rollout",
            "status",
            "deployment/tidemill-operator",
            "-n",
            Operator::namespace(),
            "--timeout=60s",
        ])?
        .ok()?;
        ensure!(false, "not yet: {:?}", condition(&object, "Ready"));
        Ok(None)
    })?;
    let claims = list(ns, "persistentvolumeclaims", "app.kubernetes.io/component=bookie")?;
    ensure!(claims.len() == 3, "{} claims of bookies", claims.len());
    let report = verify.finish(LIMIT)?;
    seen(format!(
        "operator killed {kills} times while bookies went from 5 to 3 under verify: {}",
        summary(&report)
    ))
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn two_operators_do_the_work_of_one() -> Result<()> {
    Operator::installed()?;
    let system = Operator::namespace();
    let name = "deployment/tidemill-operator";
    kubectl(&["scale", name, "-n", system, "--replicas=2"])?.ok()?;
    kubectl(&["rollout", "status", name, "-n", system, "--timeout=120s"])?.ok()?;
    let namespace = Namespace::with_cluster("two", Size::SMALL)?;
    let lease = until("one of them to lead", LIMIT, || {
        let leases = list(system, "leases", "")?;
        Ok(leases.iter().find_map(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned)))
    })?;
    namespace.create_topic(CLUSTER, "orders", 2)?;
    // The other one takes over.
    kubectl(&["delete", "pods", "--all", "-n", system, "--grace-period=0", "--force", "--wait=false"])?
        .ok()?;
    let pool = json!({ "name": "main", "replicas": 4, "storage": { "size": "1Gi" } });
    patch(namespace.name(), "cluster", CLUSTER, &json!({ "spec": { "bookiePools": [pool] } }))?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    ensure!(namespace.pods("bookie")?.len() == 4, "the fourth bookie is not there");
    seen(format!("two operators, {lease} led; both killed, the next leader went on"))
}
