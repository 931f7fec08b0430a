//! Declared topics with real processes: claims, tombstones, purge, a thousand topics, an operator that lost its lead.

use std::{fmt::Write, fs, os::unix::fs::MetadataExt, path::Path, time::Duration, time::Instant};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::{Client, ClientConfig, ErrorCode, v1};
use tidemill_e2e::{Cluster, Finished, Options, tidemill};

const LIMIT: Duration = Duration::from_secs(90);

fn at(cluster: &Cluster, args: &[&str], input: &[u8]) -> Result<Finished> {
    let server = format!("--server={}", cluster.server());
    let mut all = args.to_vec();
    all.push(&server);
    tidemill(&all, input, LIMIT)
}

fn topic(name: &str, more: &str) -> String {
    format!(
        "apiVersion: tidemill.dev/v1alpha1\nkind: Topic\nmetadata: {{name: {name}}}\nspec:\n  clusterRef: {{name: main}}\n  partitions: 2\n{more}---\n"
    )
}

fn apply(cluster: &Cluster, manifest: &str) -> Result<Finished> {
    at(cluster, &["apply", "-f", "-"], manifest.as_bytes())
}

fn refused(done: &Finished, code: i32, words: &[&str]) -> Result<()> {
    ensure!(done.code == Some(code), "exit code {:?} instead of {code}: {}", done.code, done.stderr);
    for word in words {
        ensure!(done.stderr.contains(word), "{word:?} is missing in: {}", done.stderr);
    }
    Ok(())
}

fn numbers(n: u32) -> String {
    (1..=n).fold(String::new(), |mut s, n| {
        let _infallible = writeln!(s, "{n}");
        s
    })
}

#[test]
fn a_topic_lives_dies_and_comes_back_with_its_records() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    let orders = topic("orders", "");
    ensure!(apply(&cluster, &orders)?.ok()?.stdout == "topic.tidemill.dev/orders created\n");
    ensure!(apply(&cluster, &orders)?.ok()?.stdout == "topic.tidemill.dev/orders unchanged\n");
    let sent = numbers(5_000);
    at(&cluster, &["produce", "orders"], sent.as_bytes())?.ok()?;

    // Two objects for one topic: the loser is told whom it lost to.
    let rival = topic("rival", "  topicName: orders\n  adoption: Take\n");
    refused(&apply(&cluster, &rival)?, 4, &["topic orders is claimed by Topic default/orders", "Conflict"])?;
    refused(
        &at(&cluster, &["topic", "delete", "orders"], b"")?,
        4,
        &["TOPIC_CLAIMED", "Topic default/orders"],
    )?;

    // What would change, and what is refused.
    let grown = topic("orders", "  retention: {bytes: 5Gi}\n").replace("partitions: 2", "partitions: 3");
    let diff = at(&cluster, &["diff", "-f", "-"], grown.as_bytes())?;
    ensure!(diff.code == Some(1) && diff.stderr.is_empty(), "{diff:?}");
    let differences =
        "topic.tidemill.dev/orders\n  partitions: 2 -> 3\n  config.retention.bytes: (none) -> 5368709120\n";
    ensure!(diff.stdout == differences, "{}", diff.stdout);
    ensure!(apply(&cluster, &grown)?.ok()?.stdout == "topic.tidemill.dev/orders configured\n");
    ensure!(at(&cluster, &["diff", "-f", "-"], grown.as_bytes())?.ok()?.stdout.is_empty());
    refused(&apply(&cluster, &orders)?, 4, &["PartitionsShrink", "has 3 partitions, 2 are asked for"])?;
    refused(
        &apply(&cluster, &topic("orders", "  colour: red\n"))?,
        2,
        &["standard input document 1: spec.colour: is not known"],
    )?;

    let shown = at(&cluster, &["get", "topics", "-o", "name"], b"")?.ok()?.stdout;
    ensure!(shown == "topic.tidemill.dev/orders\n", "{shown}");
    let shown = at(&cluster, &["describe", "topic", "orders"], b"")?.ok()?.stdout;
    ensure!(shown.contains("Claimed by: Topic default/orders (uid manifest:default/orders)"), "{shown}");

    // Deleted, and everything of it is there again.
    let gone = at(&cluster, &["delete", "-f", "-"], grown.as_bytes())?.ok()?;
    ensure!(
        gone.stdout == "topic.tidemill.dev/orders deleted\n" && gone.stderr.contains("brings them back"),
        "{gone:?}"
    );
    refused(&at(&cluster, &["produce", "orders"], b"1\n")?, 1, &["TOPIC_TOMBSTONED"])?;
    cluster.kill_all()?;
    cluster.up()?;
    let back = apply(&cluster, &grown)?.ok()?;
    ensure!(
        back.stdout == "topic.tidemill.dev/orders configured\n"
            && back.stderr.contains("has its records back"),
        "{back:?}"
    );
    let read = at(&cluster, &["consume", "orders", "--from=earliest", "--until-end"], b"")?.ok()?.stdout;
    let mut read: Vec<u32> = read.lines().map(str::parse).collect::<Result<_, _>>()?;
    read.sort_unstable();
    ensure!(read == (1..=5_000).collect::<Vec<_>>(), "{} records are back", read.len());
    cluster.stop()
}

/// Bytes that the files of a folder take on the disk.
fn used(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        // Files come and go while this looks.
        let Ok(entry) = entry else { continue };
        let Ok(meta) = entry.metadata() else { continue };
        sum += if meta.is_dir() { used(&entry.path()).unwrap_or(0) } else { meta.blocks() * 512 };
    }
    Ok(sum)
}

#[test]
fn the_purge_frees_the_disks() -> Result<()> {
    let set = [
        "meta.tick-ms=100",
        "meta.purge-wait-ms=500",
        "bookie.gc-pass-ms=300",
        "bookie.segment-bytes=33554432",
    ];
    let options = Options { set: set.map(str::to_owned).to_vec(), ..Options::default() };
    let mut cluster = Cluster::start(options)?;
    let big = topic("big", "  purgeAfter: 1s\n");
    apply(&cluster, &big)?.ok()?;
    let line = "x".repeat(999) + "\n";
    at(&cluster, &["produce", "big"], line.repeat(80_000).as_bytes())?.ok()?;
    let full = used(&cluster.data())?;
    ensure!(full > 3 * 80_000_000, "three copies of 80 MB take {full} bytes");
    at(&cluster, &["delete", "-f", "-"], big.as_bytes())?.ok()?;
    let begun = Instant::now();
    loop {
        let shown = at(&cluster, &["get", "topics"], b"")?.ok()?.stdout;
        let now = used(&cluster.data())?;
        // Whole segments go; what lies beside other entries, or in the segment that is being written, goes later.
        if !shown.contains("big") && now + 80_000_000 <= full {
            return cluster.stop();
        }
        if begun.elapsed() > LIMIT {
            bail!("{now} of {full} bytes are still used; topics: {shown}");
        }
    }
}

#[test]
fn a_thousand_topics_in_one_file_and_an_operator_that_lost_its_lead() -> Result<()> {
    let mut cluster = Cluster::start(Options { brokers: 2, ..Options::default() })?;
    let all: String = (0..1_000).map(|i| topic(&format!("t{i}"), "")).collect();
    let made = at(&cluster, &["apply", "--wait=30s", "-f", "-"], all.as_bytes())?.ok()?;
    ensure!(made.stdout.lines().count() == 1_000 && made.stdout.lines().all(|l| l.ends_with(" created")));
    let again = apply(&cluster, &all)?.ok()?;
    ensure!(again.stdout.lines().count() == 1_000 && again.stdout.lines().all(|l| l.ends_with(" unchanged")));
    let shown = at(&cluster, &["get", "tmt"], b"")?.ok()?.stdout;
    ensure!(
        shown.lines().filter(|l| l.contains("True   Ready")).count() == 1_000,
        "{}",
        &shown[..500.min(shown.len())]
    );

    let server = cluster.server();
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let client = Client::connect(ClientConfig::new([server])).await?;
        let control = client.control();
        let old = control.acquire_operator_epoch("operator-0").await?;
        let first = control.clone().with_operator_epoch(old);
        let request = v1::ReleaseClaimsRequest {
            claims: vec![v1::ClaimRelease { name: "t1".into(), claim_uid: "manifest:default/t1".into() }],
        };
        ensure!(first.release_claims(request.clone()).await?.released == [true]);
        control.acquire_operator_epoch("operator-1").await?;
        let e = first.release_claims(request).await.err().context("a stale operator was heard")?;
        ensure!(e.code == Some(ErrorCode::StaleOperatorEpoch), "{e}");
        ensure!(e.message.contains("operator-1"), "{e}");
        anyhow::Ok(())
    })?;
    cluster.stop()
}
