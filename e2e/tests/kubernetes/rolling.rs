//! Another image rolls out, and back, while records flow.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tidemill_e2e::kube::{
    CLUSTER, Job, Namespace, Size, condition, get, list, next_image, patch, seen, until,
};

use crate::kills::summary;

const LIMIT: Duration = Duration::from_secs(420);

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn an_image_rolls_out_and_back_under_load() -> Result<()> {
    let next = next_image()?;
    let namespace = Namespace::with_cluster("rolling", Size::SAFE)?;
    let ns = namespace.name();
    let before = images(ns)?;
    ensure!(before.len() == 1 && before[0] != next, "the pods run {before:?}");
    let verify = Job::start(ns, "verify", CLUSTER, &["verify", "--duration=240s", "--rate=300"], "")?;
    until("the load", LIMIT, || Ok((verify.phase()? == "Running").then_some(())))?;
    for image in [next, before[0].clone()] {
        let wanted = vec![image.clone()];
        patch(ns, "cluster", CLUSTER, &json!({ "spec": { "image": image } }))?;
        namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
        // Ready means done: nothing of the old revision is left (rule 4).
        let found = images(ns)?;
        ensure!(found == wanted, "Ready, and the pods run {found:?}, not {wanted:?}");
    }
    let cluster = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
    ensure!(condition(&cluster, "Updated").is_some_and(|(is, ..)| is == "True"), "{}", cluster["status"]);
    let running = verify.phase()? == "Running";
    let report = verify.finish(LIMIT)?;
    seen(format!(
        "3 + 4 + 2 pods rolled to another image and back under verify ({}): {}",
        if running { "to the end" } else { "which ended before the last step" },
        summary(&report)
    ))
}

/// The images of the Cluster's pods, each once.
fn images(ns: &str) -> Result<Vec<String>> {
    let mut images = Vec::new();
    for pod in list(ns, "pods", "tidemill.dev/cluster")? {
        let image = pod["spec"]["containers"][0]["image"].as_str().context("a pod without an image")?;
        images.push(image.to_owned());
    }
    images.sort();
    images.dedup();
    Ok(images)
}
