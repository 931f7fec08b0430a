//! Rule 17: Topics by the thousand are ready soon, quiet afterwards, and cost little memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tidemill_e2e::kube::{
    Namespace, Operator, Size, kubectl, kubectl_with, list, seen, together, topic, until,
};

const TOPICS: usize = 1_000;
const LIMIT: Duration = Duration::from_secs(300);
/// The most that the operator may hold.
const MEMORY: u64 = 128 << 20;

#[test]
fn a_thousand_topics_are_ready_soon_and_quiet_afterwards() -> Result<()> {
    let namespace = Namespace::with_cluster("thousand", Size::SMALL)?;
    let ns = namespace.name();
    let manifests = together((0..TOPICS).map(|n| topic(&format!("orders-{n:04}"), 1))).to_string();
    // Of this process alone, so that its counters begin at nothing.
    Operator::restart()?;
    let firsts = || Operator::sum("time_to_ready_seconds_count{kind=\"topic\"");
    let started = Instant::now();
    kubectl_with(&["apply", "--server-side", "-n", ns, "-f", "-"], manifests.as_bytes(), LIMIT)?.ok()?;
    let applied = started.elapsed();
    until("every Topic to become Ready once", LIMIT, || {
        let count = firsts()?;
        ensure!(count >= TOPICS as u64, "{count} of {TOPICS} were");
        Ok(Some(()))
    })?;
    // The counter counts a Topic twice that got a pass before its first status came back: the list decides.
    namespace.wait_topics(TOPICS, LIMIT)?;
    let took = started.elapsed();
    let peak = Operator::sum("peak_resident_bytes")?;

    let before = settled(ns)?;
    // A new process lists and judges every one of them.
    Operator::restart()?;
    until("a pass over every Topic", LIMIT, || {
        let passes = Operator::sum("reconciles_total{kind=\"topic\"")?;
        ensure!(passes >= TOPICS as u64, "{passes} passes");
        Ok(Some(()))
    })?;
    let writes = Operator::sum("status_writes_total{kind=\"topic\"")?;
    let after = versions(ns)?;
    let moved = before.iter().filter(|(name, version)| after.get(*name) != Some(version)).count();
    let again = Operator::sum("peak_resident_bytes")?;
    seen(format!(
        "{TOPICS} Topics: kubectl apply took {:.1} s, all were Ready after {:.1} s; \
         a restarted operator looked at all of them again and wrote {writes} times, {moved} objects moved; \
         most memory {} MiB, after the restart {} MiB",
        applied.as_secs_f64(),
        took.as_secs_f64(),
        peak >> 20,
        again >> 20
    ))?;
    ensure!(moved == 0 && writes == 0, "{writes} writes without need, {moved} objects moved");
    ensure!(peak < MEMORY && again < MEMORY, "the operator held {peak} and {again} bytes");
    Ok(())
}

fn versions(ns: &str) -> Result<BTreeMap<String, String>> {
    let mut versions = BTreeMap::new();
    for object in list(ns, "topics", "")? {
        let text = |key: &str| object["metadata"][key].as_str().map(str::to_owned).context("metadata");
        versions.insert(text("name")?, text("resourceVersion")?);
    }
    ensure!(versions.len() == TOPICS, "{} Topics", versions.len());
    Ok(versions)
}

/// The versions, once no pass is under way and two readings are equal.
fn settled(ns: &str) -> Result<BTreeMap<String, String>> {
    until("the Topics to settle", LIMIT, || {
        let first = versions(ns)?;
        kubectl(&["annotate", "topic", "orders-0000", "-n", ns, "--overwrite", &mark()])?.ok()?;
        let passes = Operator::passes()?;
        until("a pass", LIMIT, || Ok((Operator::passes()? > passes).then_some(())))?;
        let second = versions(ns)?;
        let same =
            first.iter().all(|(name, version)| name == "orders-0000" || second.get(name) == Some(version));
        Ok(same.then_some(second))
    })
}

fn mark() -> String {
    format!("example.org/look={}", uuid::Uuid::new_v4())
}
