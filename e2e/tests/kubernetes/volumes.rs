//! Volumes that are not the ones that were there: said, never used by mistake, and mended as documented
//! (docs/ops/kubernetes/replace-a-disk.md).

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tidemill_e2e::kube::{
    CLUSTER, Forward, Namespace, Size, condition, consume_numbers, delete, get, kubectl, patch,
    produce_numbers, seen, until,
};
use tidemill_e2e::tidemill;

const LIMIT: Duration = Duration::from_secs(300);
const UUID: &str = "tidemill.dev/uuid";

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn a_claim_that_is_deleted_by_hand_is_said_and_mended() -> Result<()> {
    let namespace = Namespace::with_cluster("claim", Size { bookies: 4, ..Size::SMALL })?;
    let ns = namespace.name();
    namespace.add_topic("orders", 2)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=1000, LIMIT)?;
    let pod = namespace.pods("bookie")?.pop().context("no bookies")?;
    let old = noted(ns, &pod)?;
    kubectl(&["delete", "pvc", &format!("data-{pod}"), "-n", ns, "--wait=false"])?.ok()?;
    delete(ns, "pod", &pod, LIMIT)?;
    let says = says(ns, "VolumeReplaced")?;
    ensure!(says.contains(&old) && says.contains("replace-a-disk"), "{says}");
    produce_numbers(ns, CLUSTER, "orders", 1001..=2000, LIMIT)?;

    let forward = Forward::start(ns, &format!("service/{CLUSTER}"))?;
    let server = format!("--server={}", forward.url());
    for step in ["lost", "retire"] {
        until(&format!("admin bookie {step}"), LIMIT, || {
            let args = ["admin", "bookie", step, old.as_str(), "--yes", server.as_str()];
            tidemill(&args, b"", LIMIT)?.ok().map(Some)
        })?;
    }
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    ensure!(noted(ns, &pod)? != old, "the old uuid came back");
    all_records(ns, 2000)?;
    seen(format!(
        "claim and pod of {pod} deleted by hand: {says}; lost, repaired, retired: Ready, 2 000 of 2 000 records"
    ))
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn two_swapped_volumes_are_said_and_swapped_back() -> Result<()> {
    let namespace = Namespace::with_cluster("swapped", Size::SMALL)?;
    let ns = namespace.name();
    namespace.add_topic("orders", 2)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=1000, LIMIT)?;
    let pods = namespace.pods("bookie")?;
    let (one, two) = (folder(ns, &pods[0])?, folder(ns, &pods[1])?);
    let before = [noted(ns, &pods[0])?, noted(ns, &pods[1])?];
    without_bookies(&namespace, || swap(&one, &two))?;
    let says = says(ns, "VolumeChanged")?;
    ensure!(before.iter().any(|uuid| says.contains(uuid)) && says.contains("replace-a-disk"), "{says}");
    ensure!([noted(ns, &pods[0])?, noted(ns, &pods[1])?] == before, "the notes were written over");
    without_bookies(&namespace, || swap(&one, &two))?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    all_records(ns, 1000)?;
    seen(format!("two bookies' volumes swapped: {says}; swapped back: Ready, 1 000 of 1 000 records"))
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn a_volume_of_another_cluster_is_refused() -> Result<()> {
    let other = Namespace::with_cluster("other", Size::SMALL)?;
    let namespace = Namespace::with_cluster("foreign", Size::SMALL)?;
    let ns = namespace.name();
    namespace.add_topic("orders", 2)?;
    produce_numbers(ns, CLUSTER, "orders", 1..=1000, LIMIT)?;
    let own = folder(ns, &namespace.pods("bookie")?[0])?;
    let foreign = folder(other.name(), &other.pods("bookie")?[0])?;
    // Nobody may write to a volume that is carried from one cluster to another.
    other.kill_data_plane()?;
    without_bookies(&namespace, || swap(&own, &foreign))?;
    let says = says(ns, "ForeignVolume")?;
    let cluster = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
    ensure!(condition(&cluster, "Stalled").is_some_and(|(is, ..)| is == "True"), "{}", cluster["status"]);
    without_bookies(&namespace, || swap(&own, &foreign))?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    all_records(ns, 1000)?;
    seen(format!(
        "a volume of another cluster: {says}; the right one put back: Ready, 1 000 of 1 000 records"
    ))
}

fn all_records(ns: &str, count: u32) -> Result<()> {
    let found = consume_numbers(ns, CLUSTER, "orders", LIMIT)?;
    ensure!(found == (1..=count).collect(), "{} of {count} records", found.len());
    Ok(())
}

/// Waits until the Cluster is not Ready for this reason, and answers the message.
fn says(ns: &str, reason: &str) -> Result<String> {
    until(&format!("the Cluster to say {reason}"), LIMIT, || {
        let cluster = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
        let (status, is, message) = condition(&cluster, "Ready").context("no verdict")?;
        ensure!(status == "False" && is == reason, "{is}: {message}");
        Ok(Some(message))
    })
}

/// The uuid that is noted on the claim of a bookie.
fn noted(ns: &str, pod: &str) -> Result<String> {
    let claim = get(ns, "persistentvolumeclaim", &format!("data-{pod}"))?.context("no claim")?;
    Ok(claim["metadata"]["annotations"][UUID].as_str().context("no uuid is noted")?.to_owned())
}

/// Where the volume of a bookie lies on this machine.
fn folder(ns: &str, pod: &str) -> Result<PathBuf> {
    ensure!(
        std::env::var_os("TIDEMILL_E2E_XTASK").is_some(),
        "this reaches into volumes: it runs on the cluster that `cargo xtask e2e` starts"
    );
    let claim = get(ns, "persistentvolumeclaim", &format!("data-{pod}"))?.context("no claim")?;
    let volume = claim["spec"]["volumeName"].as_str().context("the claim is not bound")?;
    let volume = get(ns, "persistentvolume", volume)?.context("no volume")?;
    Ok(volume["spec"]["hostPath"]["path"].as_str().context("the volume is no folder")?.into())
}

/// Does something while no bookie of the Cluster runs.
fn without_bookies(namespace: &Namespace, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let ns = namespace.name();
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "paused": true } }))?;
    until("the pause to be seen", LIMIT, || {
        let cluster = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
        Ok(condition(&cluster, "Paused"))
    })?;
    let set = format!("{CLUSTER}-bookie-main");
    kubectl(&["scale", "statefulset", &set, "-n", ns, "--replicas=0"])?.ok()?;
    until("the bookies' end", LIMIT, || Ok(namespace.pods("bookie")?.is_empty().then_some(())))?;
    work()?;
    // The operator makes the set what the spec says.
    patch(ns, "cluster", CLUSTER, &json!({ "spec": { "paused": false } }))
}

/// Swaps what lies in two folders; the folders themselves are the volumes.
fn swap(one: &Path, two: &Path) -> Result<()> {
    let aside = tempfile::Builder::new().prefix(".aside-").tempdir_in(one.parent().context("no parent")?)?;
    move_all(one, aside.path())?;
    move_all(two, one)?;
    move_all(aside.path(), two)
}

fn move_all(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        std::fs::rename(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
