//! The operator dies, or there are two of it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tidemill_e2e::kube::{
    CLUSTER, Job, Namespace, Operator, Size, apply, condition, delete, get, kubectl, list, patch, ready,
    seen, until,
};

use crate::kills::summary;

const LIMIT: Duration = Duration::from_secs(300);
const NAME: &str = "tidemill-operator";
/// Deaths of the operator in the midst of scale-ins.
const KILLS: u32 = 50;
/// More rounds than this mean that it hardly ever dies in the midst of anything.
const ROUNDS: u32 = 25;
/// Within it the operator ends the pass after its election, or is in the midst of it; a scale-in takes several.
const LIFE_MS: u64 = 2_000;

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn an_operator_that_is_killed_fifty_times_in_the_midst_of_scale_ins_finishes_them() -> Result<()> {
    let namespace = Namespace::with_cluster("restarts", Size::SMALL)?;
    let (mut kills, mut rounds) = (0, 0);
    let mut last = String::new();
    while kills < KILLS {
        ensure!(rounds < ROUNDS, "only {kills} kills in {rounds} rounds");
        rounds += 1;
        let load = load(&namespace, "30s")?;
        bookies(&namespace, 7)?;
        namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
        bookies(&namespace, 3)?;
        kills += kill_until_done(&namespace)?;
        settled_at_three(&namespace)?;
        let running = load.phase()? == "Running";
        last = format!(
            "{} ({})",
            summary(&load.finish(LIMIT)?),
            if running { "written to the end" } else { "which ended before" }
        );
    }
    seen(format!(
        "operator killed {kills} times at random points of {rounds} scale-ins from 7 to 3 bookies under verify: \
         each time 3 bookies in service, 3 claims, nobody drained; the last round: {last}"
    ))
}

/// Kills the operator again and again, each time after a random part of a pass, until the scale-in is done.
fn kill_until_done(namespace: &Namespace) -> Result<u32> {
    let end = Instant::now() + LIMIT * 2;
    let mut kills = 0;
    loop {
        let object = get(namespace.name(), "cluster", CLUSTER)?.context("the Cluster is gone")?;
        if ready(&object) && namespace.pods("bookie")?.len() == 3 {
            return Ok(kills);
        }
        ensure!(Instant::now() < end, "killed {kills} times: {:?}", condition(&object, "Ready"));
        let old = holder()?;
        // Without its Lease nobody waits for it to run out: the next one begins while the one before may not have ended yet.
        kubectl(&["delete", "lease", NAME, "-n", Operator::namespace(), "--ignore-not-found"])?.ok()?;
        kill_all()?;
        kills += 1;
        until("the next operator to lead", LIMIT, || {
            let now = holder()?;
            Ok((now.is_some() && now != old).then_some(()))
        })?;
        thread::park_timeout(Duration::from_millis(random(LIFE_MS)));
    }
}

/// Who leads, as the Lease says.
fn holder() -> Result<Option<String>> {
    let lease = get(Operator::namespace(), "lease", NAME)?.unwrap_or_default();
    Ok(lease["spec"]["holderIdentity"].as_str().map(str::to_owned))
}

fn kill_all() -> Result<()> {
    let kill = ["--grace-period=0", "--force", "--wait=false"];
    let mut args = vec!["delete", "pods", "--all", "-n", Operator::namespace()];
    args.extend(kill);
    kubectl(&args)?.ok().map(drop)
}

fn random(below: u64) -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0 % below
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn an_operator_that_stands_by_goes_on_when_the_leader_dies() -> Result<()> {
    Operator::installed()?;
    let _one = Replicas::set(2)?;
    let namespace = Namespace::with_cluster("standby", Size::SMALL)?;
    let old = until("one of them to lead", LIMIT, holder)?;
    bookies(&namespace, 4)?;
    delete(Operator::namespace(), "pod", &old, LIMIT)?;
    let new = until("the other one to lead", LIMIT, || Ok(holder()?.filter(|now| *now != old)))?;
    namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    ensure!(namespace.pods("bookie")?.len() == 4, "the fourth bookie is not there");
    seen(format!("two operators: {old} led and was deleted, {new} went on"))
}

/// The operator's Deployment with another number of pods, until this value is dropped.
struct Replicas;

impl Replicas {
    fn set(count: u8) -> Result<Self> {
        scale(count)?;
        Ok(Self)
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        if let Err(error) = scale(1) {
            drop(seen(format!("the operator was not scaled back: {error:#}")));
        }
    }
}

fn scale(count: u8) -> Result<()> {
    let (name, system) = (format!("deployment/{NAME}"), Operator::namespace());
    kubectl(&["scale", &name, "-n", system, &format!("--replicas={count}")])?.ok()?;
    until("the Deployment", LIMIT, || {
        let running = list(system, "pods", "")?.len();
        ensure!(running == usize::from(count), "{running} pods");
        kubectl(&["rollout", "status", &name, "-n", system, "--timeout=60s"])?.ok().map(Some)
    })
    .map(drop)
}

#[test]
#[ignore = "minutes: cargo xtask e2e --full"]
fn two_operators_that_both_lead_come_to_the_end_of_one() -> Result<()> {
    let namespace = Namespace::with_cluster("two", Size::SMALL)?;
    let load = load(&namespace, "60s")?;
    let second = Second::start()?;
    let before = second.passes()?;
    for count in [5, 3] {
        bookies(&namespace, count)?;
        namespace.wait_ready("cluster", CLUSTER, LIMIT)?;
    }
    settled_at_three(&namespace)?;
    let passes = second.passes()? - before;
    ensure!(passes > 0, "the second operator did nothing");
    let report = load.finish(LIMIT)?;
    seen(format!(
        "two operators with a Lease each, the second one with {passes} passes, while bookies went from 3 to 5 and back \
         under verify: 3 bookies in service, 3 claims; {}",
        summary(&report)
    ))
}

/// Another operator that knows nothing of the first one: same rights, a Lease of its own. It goes with this value.
struct Second;

const SECOND: &str = "tidemill-operator-second";

impl Second {
    fn start() -> Result<Self> {
        let system = Operator::namespace();
        let mut copy = get(system, "deployment", NAME)?.context("no operator")?;
        let labels = json!({ "app": SECOND });
        let template = &mut copy["spec"]["template"];
        template["metadata"] = json!({ "labels": labels });
        let environment = template["spec"]["containers"][0]["env"].as_array_mut().context("no env")?;
        let lease = environment.iter_mut().find(|entry| entry["name"] == "LEASE_NAME").context("no Lease")?;
        lease["value"] = json!(SECOND);
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": SECOND },
            "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": template },
        });
        // The chart's role names the Lease of its own Deployment.
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": { "name": SECOND },
            "rules": [{ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"] }],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": { "name": SECOND },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": SECOND },
            "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": system }],
        });
        let second = Self;
        apply(system, &tidemill_e2e::kube::together([role, binding, deployment]).to_string())?;
        until("the second operator to lead", LIMIT, || Ok((second.passes()? > 0).then_some(())))?;
        Ok(second)
    }

    /// Passes over Clusters that it has ended.
    fn passes(&self) -> Result<u64> {
        let system = Operator::namespace();
        let mut sum = 0;
        for pod in list(system, "pods", &format!("app={SECOND}"))? {
            let name = pod["metadata"]["name"].as_str().context("a pod without a name")?;
            sum += Operator::sum_of(name, "reconciles_total{kind=\"cluster\"")?;
        }
        Ok(sum)
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        for kind in ["deployment", "rolebinding", "role", "lease"] {
            if let Err(error) = delete(Operator::namespace(), kind, SECOND, LIMIT) {
                drop(seen(format!("{kind} {SECOND} is left behind: {error:#}")));
            }
        }
    }
}

fn load(namespace: &Namespace, duration: &str) -> Result<Job> {
    let duration = format!("--duration={duration}");
    let job = Job::start(namespace.name(), "verify", CLUSTER, &["verify", &duration, "--rate=300"], "")?;
    until("the load", LIMIT, || Ok((job.phase()? == "Running").then_some(())))?;
    Ok(job)
}

fn bookies(namespace: &Namespace, count: u8) -> Result<()> {
    let pool = json!({ "name": "main", "replicas": count, "storage": { "size": "1Gi" } });
    patch(namespace.name(), "cluster", CLUSTER, &json!({ "spec": { "bookiePools": [pool] } }))
}

/// Waits for the end state of every scale-in: as if nobody had died and there were one operator.
fn settled_at_three(namespace: &Namespace) -> Result<()> {
    until("three bookies and nothing of others", LIMIT, || at_three(namespace).map(Some))
}

fn at_three(namespace: &Namespace) -> Result<()> {
    let ns = namespace.name();
    let object = get(ns, "cluster", CLUSTER)?.context("the Cluster is gone")?;
    let members = object["status"]["members"].as_array().context("no members")?;
    let bookies: Vec<&Value> = members.iter().filter(|member| member["role"] == "bookie").collect();
    let (serving, rest): (Vec<&Value>, Vec<&Value>) =
        bookies.into_iter().partition(|member| member["state"] == "rw");
    let retired = rest.iter().all(|member| member["state"] == "retired");
    ensure!(serving.len() == 3 && retired, "members: {members:?}");
    let claims = list(ns, "persistentvolumeclaims", "app.kubernetes.io/component=bookie")?;
    ensure!(claims.len() == 3, "{} claims of bookies", claims.len());
    for claim in claims {
        let notes = &claim["metadata"]["annotations"];
        let (uuid, draining) = (&notes["tidemill.dev/uuid"], &notes["tidemill.dev/draining"]);
        ensure!(serving.iter().any(|member| member["uuid"] == *uuid), "a claim carries {uuid}: {serving:?}");
        ensure!(draining.is_null(), "{uuid} is still to be drained");
    }
    Ok(())
}
