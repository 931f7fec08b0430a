//! ConsumerGroups with real processes: claims, configuration, resets that happen once, deletion.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tidemill_client::{Client, ClientConfig, ErrorCode, Event, GroupConsumerConfig, GroupEvent, ResetTo};
use tidemill_e2e::{Cluster, Finished, Options, tidemill};

const LIMIT: Duration = Duration::from_secs(90);

fn at(cluster: &Cluster, args: &[&str], input: &[u8]) -> Result<Finished> {
    let server = format!("--server={}", cluster.server());
    let mut all = args.to_vec();
    all.push(&server);
    tidemill(&all, input, LIMIT)
}

fn group(name: &str, more: &str) -> String {
    format!(
        "apiVersion: tidemill.dev/v1alpha1\nkind: ConsumerGroup\nmetadata: {{name: {name}}}\nspec:\n  clusterRef: {{name: main}}\n  topics: [orders]\n{more}"
    )
}

fn apply(cluster: &Cluster, manifest: &str) -> Result<Finished> {
    at(cluster, &["apply", "-f", "-"], manifest.as_bytes())
}

fn says(done: &Finished, stdout: &str) -> Result<()> {
    ensure!(done.code == Some(0) && done.stdout == stdout, "{stdout:?} expected: {done:?}");
    Ok(())
}

fn refused(done: &Finished, code: i32, words: &[&str]) -> Result<()> {
    ensure!(done.code == Some(code), "exit code {:?} instead of {code}: {}", done.code, done.stderr);
    for word in words {
        ensure!(done.stderr.contains(word), "{word:?} is missing in: {}", done.stderr);
    }
    Ok(())
}

/// What the group reads until the end, as a member that commits.
fn read(cluster: &Cluster, group: &str) -> Result<usize> {
    let group = format!("--group={group}");
    let args = ["consume", "orders", group.as_str(), "--until-end"];
    Ok(at(cluster, &args, b"")?.ok()?.stdout.lines().count())
}

fn object(cluster: &Cluster, name: &str) -> Result<Value> {
    let shown = at(cluster, &["get", "consumergroup", name, "-o", "json"], b"")?.ok()?.stdout;
    let list: Value = serde_json::from_str(&shown)?;
    list.get(0).cloned().context("no object")
}

#[test]
fn a_group_is_claimed_configured_and_reset_once() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    at(&cluster, &["topic", "create", "orders", "--partitions=2"], b"")?.ok()?;
    let lines = (0..1_000).fold(String::new(), |mut s, n| {
        let _infallible = writeln!(s, "{n}");
        s
    });
    at(&cluster, &["produce", "orders"], lines.as_bytes())?.ok()?;

    let plain = group("billing", "  startAt: earliest\n  assignment: {strategy: range}\n");
    let diff = at(&cluster, &["diff", "-f", "-"], plain.as_bytes())?;
    ensure!(diff.code == Some(1) && diff.stdout.contains("would be created"), "{diff:?}");
    says(&apply(&cluster, &plain)?, "consumergroup.tidemill.dev/billing created\n")?;
    says(&apply(&cluster, &plain)?, "consumergroup.tidemill.dev/billing unchanged\n")?;
    // Before anybody has read anything the lag is all there is.
    let shown = object(&cluster, "billing")?;
    ensure!(shown["status"]["lag"] == 1_000 && shown["spec"]["assignment"]["strategy"] == "range", "{shown}");
    ensure!(read(&cluster, "billing")? == 1_000, "where it starts is the object's word");
    ensure!(read(&cluster, "billing")? == 0);

    // Two objects for one group: the loser is told whom it lost to, and so is who deletes it by hand.
    let rival = group("rival", "  groupName: billing\n");
    refused(&apply(&cluster, &rival)?, 4, &["Conflict", "ConsumerGroup default/billing"])?;
    let by_hand = at(&cluster, &["group", "delete", "billing"], b"")?;
    refused(&by_hand, 4, &["GROUP_CLAIMED", "ConsumerGroup default/billing"])?;

    // Once per id, across restarts of everything, and whoever asks.
    let first = plain.clone() + "  reset: {id: r1, to: earliest}\n";
    says(&apply(&cluster, &first)?, "consumergroup.tidemill.dev/billing configured\n")?;
    ensure!(read(&cluster, "billing")? == 1_000, "it was reset");
    cluster.kill_all()?;
    cluster.up()?;
    says(&apply(&cluster, &first)?, "consumergroup.tidemill.dev/billing unchanged\n")?;
    ensure!(read(&cluster, "billing")? == 0, "it was reset once");
    let second = plain.clone() + "  reset: {id: r2, to: latest}\n";
    says(&apply(&cluster, &second)?, "consumergroup.tidemill.dev/billing configured\n")?;
    says(&apply(&cluster, &first)?, "consumergroup.tidemill.dev/billing unchanged\n")?;
    let shown = at(&cluster, &["describe", "consumergroup", "billing"], b"")?.ok()?.stdout;
    ensure!(shown.contains("r1 to earliest") && shown.contains("r2 to latest"), "{shown}");

    // A change, told as one.
    let moved = first.replace("strategy: range", "static: {m-0: [orders/1]}");
    let diff = at(&cluster, &["diff", "-f", "-"], moved.as_bytes())?;
    let differences = "consumergroup.tidemill.dev/billing\n  assignment.strategy: range -> static\n  assignment.static: (none) -> m-0=orders/1\n";
    ensure!(diff.code == Some(1) && diff.stdout == differences, "{diff:?}");
    says(&apply(&cluster, &moved)?, "consumergroup.tidemill.dev/billing configured\n")?;

    // What this version lacks is said, before and after.
    let queue = group("jobs", "  mode: Queue\n");
    refused(&apply(&cluster, &queue)?, 4, &["Unsupported", "spec.mode"])?;
    refused(&at(&cluster, &["get", "consumergroup", "jobs"], b"")?, 3, &["UNKNOWN_GROUP"])?;

    // Let go, the other one takes over with the offsets and the memory of resets; then it goes for good.
    let gone = at(&cluster, &["delete", "-f", "-"], moved.as_bytes())?.ok()?;
    ensure!(gone.stderr.contains("stays with its offsets"), "{gone:?}");
    let heir = rival + "  reset: {id: r1, to: earliest}\n  deletionPolicy: Delete\n";
    says(&apply(&cluster, &heir)?, "consumergroup.tidemill.dev/rival configured\n")?;
    ensure!(read(&cluster, "billing")? == 0, "the reset was known");
    says(
        &at(&cluster, &["delete", "-f", "-"], heir.as_bytes())?,
        "consumergroup.tidemill.dev/rival deleted\n",
    )?;
    refused(&at(&cluster, &["group", "describe", "billing"], b"")?, 3, &["UNKNOWN_GROUP"])?;
    cluster.stop()
}

#[test]
fn a_reset_waits_for_members_or_removes_them_and_stale_operators_are_refused() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    at(&cluster, &["topic", "create", "orders", "--partitions=2"], b"")?.ok()?;
    at(&cluster, &["produce", "orders"], b"1\n2\n3\n")?.ok()?;
    let plain = group("billing", "  startAt: earliest\n");
    apply(&cluster, &plain)?.ok()?;
    let waits = plain.clone() + "  reset: {id: r1, to: latest}\n";
    let evicts = plain + "  reset: {id: r1, to: latest, requireEmpty: false}\n";
    let runtime = tokio::runtime::Runtime::new()?;
    let server = cluster.server();
    runtime.block_on(async {
        let client = Client::connect(ClientConfig::new([server])).await?;
        let config = GroupConsumerConfig::new("billing", ["orders"]);
        let mut member = client.group_consumer(config).await?;
        let began = Instant::now();
        let mut records = 0;
        while records < 3 {
            ensure!(began.elapsed() < LIMIT, "{records} of 3 records");
            for event in member.poll(Duration::from_millis(200)).await? {
                if let GroupEvent::Read(Event::Batch(batch)) = event {
                    records += batch.records.len();
                }
            }
        }
        refused(&apply(&cluster, &waits)?, 4, &["WaitingForEmptyGroup", "reset r1 waits"])?;
        says(&apply(&cluster, &evicts)?, "consumergroup.tidemill.dev/billing configured\n")?;
        let at = client.groups().committed("billing", &[]).await?;
        ensure!(at.iter().filter_map(|c| c.offset).sum::<i64>() == 3, "{at:?}");
        // The member notices, joins again, and goes on at the new positions.
        let began = Instant::now();
        let mut again = Vec::new();
        let (mut lost, mut back) = (0, 0);
        while back < 2 {
            ensure!(began.elapsed() < LIMIT, "lost {lost}, back {back}: {:?}", member.assignment());
            for event in member.poll(Duration::from_millis(200)).await? {
                match event {
                    GroupEvent::Lost(parts) => lost += parts.len(),
                    GroupEvent::Assigned(parts) if lost > 0 => back += parts.len(),
                    GroupEvent::Read(Event::Batch(batch)) => again.push(batch),
                    _ => {}
                }
            }
        }
        ensure!(lost == 2, "{lost} partitions were taken away");
        ensure!(again.is_empty(), "read again: {again:?}");
        member.close().await?;

        let control = client.control();
        let old = client.groups().with_operator_epoch(control.acquire_operator_epoch("operator-0").await?);
        control.acquire_operator_epoch("operator-1").await?;
        let e = old.reset_once("billing", &[], &ResetTo::Earliest, ("r9", "earliest"), false).await;
        let e = e.err().context("a stale operator was heard")?;
        ensure!(e.code == Some(ErrorCode::StaleOperatorEpoch), "{e}");
        anyhow::Ok(())
    })?;
    cluster.stop()
}
