//! Consumer groups with the real binary: the first five minutes, a storm of rebalances over real lines, a coordinator that
//! dies, and what is refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tidemill_client::{
    Client, ClientError, CommitMode, ErrorCode, GroupConsumer, GroupConsumerConfig, GroupEvent,
    TopicPartition, v1,
};
use tidemill_e2e::{Cluster, Finished, Options, binary, client, full, tidemill};
use tonic::transport::Channel;

const LIMIT: Duration = Duration::from_secs(90);

fn at(cluster: &Cluster, args: &[&str], input: &[u8]) -> Result<Finished> {
    let server = format!("--server={}", cluster.server());
    let mut all = args.to_vec();
    all.push(&server);
    tidemill(&all, input, LIMIT)
}

fn json(cluster: &Cluster, args: &[&str]) -> Result<serde_json::Value> {
    let mut all = args.to_vec();
    all.extend(["-o", "json"]);
    Ok(serde_json::from_str(&at(cluster, &all, b"")?.ok()?.stdout)?)
}

/// Lines of the project's own sources, each made unique by its number.
fn real_lines(least: usize) -> Result<Vec<String>> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
        for item in fs::read_dir(dir)? {
            let path = item?.path();
            if path.is_dir() {
                walk(&path, out)?;
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
        Ok(())
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for dir in ["broker/src", "client/src", "crates"] {
        walk(&root.join(dir), &mut files)?;
    }
    files.sort();
    let mut lines = Vec::new();
    while lines.len() < least {
        for f in &files {
            for line in fs::read_to_string(f)?.lines() {
                lines.push(format!("{}\t{line}", lines.len()));
            }
        }
    }
    Ok(lines)
}

/// The first five minutes of the README, with what scripts rely on around it.
#[test]
fn a_group_reads_each_line_once_and_goes_on_where_it_was() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    at(&cluster, &["topic", "create", "orders", "--partitions=8"], b"")?.ok()?;
    let lines = real_lines(50_000)?;
    at(&cluster, &["produce", "orders"], lines.join("\n").as_bytes())?.ok()?;
    let got = at(&cluster, &["consume", "orders", "--group=billing", "--until-end"], b"")?.ok()?.stdout;
    let (got, want): (BTreeSet<&str>, BTreeSet<&str>) =
        (got.lines().collect(), lines.iter().map(String::as_str).collect());
    ensure!(got == want, "{} of {} lines", got.len(), want.len());
    let again = at(&cluster, &["consume", "orders", "--group=billing", "--until-end"], b"")?.ok()?.stdout;
    ensure!(again.is_empty(), "read twice: {} lines", again.lines().count());
    // What comes later, and not a record more than was printed.
    at(&cluster, &["produce", "orders"], b"a\nb\nc\nd\ne\n")?.ok()?;
    let lag =
        |c: &Cluster| Ok::<_, anyhow::Error>(json(c, &["group", "describe", "billing"])?["lag"].as_i64());
    ensure!(lag(&cluster)? == Some(5));
    let two = at(&cluster, &["consume", "orders", "--group=billing", "--max=2"], b"")?.ok()?.stdout;
    ensure!(two.lines().count() == 2 && lag(&cluster)? == Some(3), "{two}");
    let three = at(&cluster, &["consume", "orders", "--group=billing", "--until-end"], b"")?.ok()?.stdout;
    let all: BTreeSet<&str> = two.lines().chain(three.lines()).collect();
    ensure!(all == BTreeSet::from(["a", "b", "c", "d", "e"]), "{all:?}");
    let list = json(&cluster, &["group", "list"])?;
    ensure!(list[0]["name"] == "billing" && list[0]["state"] == "empty" && list[0]["members"] == 0, "{list}");
    // Everything is killed: what was committed is there.
    cluster.kill_all()?;
    cluster.up()?;
    let nothing = at(&cluster, &["consume", "orders", "--group=billing", "--until-end"], b"")?.ok()?.stdout;
    ensure!(nothing.is_empty(), "read again after a restart: {} lines", nothing.lines().count());
    // Export, reset, import, delete.
    let saved = at(&cluster, &["group", "export", "billing"], b"")?.ok()?.stdout;
    let plan = at(&cluster, &["group", "reset", "billing", "--to=earliest"], b"")?.ok()?;
    ensure!(plan.stderr.contains("--execute") && lag(&cluster)? == Some(0), "{plan:?}");
    at(&cluster, &["group", "reset", "billing", "--to=earliest", "--execute"], b"")?.ok()?;
    ensure!(lag(&cluster)? == Some(i64::try_from(lines.len() + 5)?));
    at(&cluster, &["group", "import", "billing", "--execute"], saved.as_bytes())?.ok()?;
    ensure!(lag(&cluster)? == Some(0));
    at(&cluster, &["group", "delete", "billing"], b"")?.ok()?;
    for (args, input, code, says) in [
        (vec!["group", "describe", "billing"], "", 3, "UNKNOWN_GROUP"),
        (vec!["group", "delete", "billing"], "", 3, "UNKNOWN_GROUP"),
        (vec!["group", "export", "billing"], "", 3, "UNKNOWN_GROUP"),
        (vec!["group", "reset", "billing", "--to=earliest"], "", 3, "UNKNOWN_GROUP"),
        (vec!["group", "reset", "g", "--to=sometime"], "", 2, "--to"),
        (vec!["group", "reset", "g", "--topic=nothing", "--to=0"], "", 3, "UNKNOWN_TOPIC"),
        (
            vec!["group", "reset", "g", "--topic=orders", "--partition=99", "--to=0"],
            "",
            3,
            "UNKNOWN_PARTITION",
        ),
        (vec!["group", "import", "g"], "{}", 2, "group export"),
        (vec!["group", "describe", "a b"], "", 2, "INVALID_GROUP_NAME"),
        (vec!["consume", "orders", "--group=g", "--partition=1"], "", 2, "--partition"),
        (vec!["topic", "delete", "__consumer_offsets"], "", 2, "INVALID_TOPIC_NAME"),
    ] {
        let done = at(&cluster, &args, input.as_bytes())?;
        ensure!(done.code == Some(code) && done.stderr.contains(says), "{args:?}: {done:?}");
    }
    let produced = at(&cluster, &["produce", "__consumer_offsets"], b"x\n")?;
    ensure!(produced.code != Some(0) && produced.stderr.contains("an internal name"), "{produced:?}");
    // Beyond the end: refused, nothing is committed.
    let beyond = saved.replacen("\"offset\": ", "\"offset\": 9", 1);
    let done = at(&cluster, &["group", "import", "g", "--execute"], beyond.as_bytes())?;
    ensure!(done.code == Some(1) && done.stderr.contains("OFFSET_OUT_OF_RANGE"), "{done:?}");
    cluster.stop()
}

/// Members that print into files.
struct Members {
    server: String,
    dir: PathBuf,
    running: Vec<Child>,
    started: usize,
}

impl Members {
    fn start(&mut self) -> Result<()> {
        let out = File::create(self.dir.join(format!("member-{}.out", self.started)))?;
        let err = File::create(self.dir.join(format!("member-{}.err", self.started)))?;
        self.started += 1;
        let mut command = Command::new(binary()?);
        command
            .args(["consume", "lines", "--group=storm", "--quiet", "--server", &self.server])
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        self.running.push(command.spawn()?);
        Ok(())
    }

    fn kill_oldest(&mut self) -> Result<()> {
        let mut child = self.running.remove(0);
        let killed = child.kill();
        child.wait()?;
        Ok(killed?)
    }

    /// Whole lines of all members; one that was killed may have torn its last.
    fn lines(&self) -> Result<BTreeMap<String, u32>> {
        let mut all = BTreeMap::new();
        for n in 0..self.started {
            let text = fs::read(self.dir.join(format!("member-{n}.out")))?;
            let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
            for line in String::from_utf8_lossy(&text[..whole]).lines() {
                *all.entry(line.to_owned()).or_default() += 1;
            }
        }
        Ok(all)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for mut c in self.running.drain(..) {
            drop(c.kill());
            drop(c.wait());
        }
    }
}

async fn committed(client: &Client, group: &str) -> Result<BTreeMap<TopicPartition, i64>> {
    let found = client.groups().committed(group, &[]).await?;
    Ok(found.into_iter().filter_map(|c| Some((c.source, c.offset?))).collect())
}

/// Issue 6, real input: every second a member is killed with -9 and another one added, while lines are produced. Each line
/// comes at least once, and what is committed never goes back.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_rebalances_loses_no_line() -> Result<()> {
    // Two minutes, or what a run of all tests can bear.
    let (storm, count) =
        if full() { (Duration::from_secs(120), 400_000) } else { (Duration::from_secs(20), 60_000) };
    let mut cluster = Cluster::start(Options { brokers: 2, ..Options::default() })?;
    at(&cluster, &["topic", "create", "lines", "--partitions=12"], b"")?.ok()?;
    let client = client(&cluster.server()).await?;
    // So that the partitions of a killed member are free soon.
    let config = v1::GroupConfig { session_timeout_ms: 1_500, ..v1::GroupConfig::default() };
    client.groups().configure("storm", Some(config), None).await?;
    let lines = real_lines(count)?;
    let (server, text) = (cluster.server(), lines.join("\n"));
    let rate = format!("--rate={}", lines.len() * 3 / 4 / usize::try_from(storm.as_secs())?);
    let producing = std::thread::spawn(move || {
        tidemill(&["produce", "lines", &rate, "--server", &server], text.as_bytes(), 2 * storm + LIMIT)
    });
    let dir = cluster.root().to_owned();
    let mut members = Members { server: cluster.server(), dir, running: Vec::new(), started: 0 };
    for _ in 0..3 {
        members.start()?;
    }
    let begin = Instant::now();
    let mut before: BTreeMap<TopicPartition, i64> = BTreeMap::new();
    let mut kills = 0;
    while begin.elapsed() < storm {
        // The pace of the storm, not a wait for something.
        tokio::time::sleep(Duration::from_secs(1)).await;
        members.kill_oldest()?;
        kills += 1;
        members.start()?;
        let now = committed(&client, "storm").await?;
        for (p, offset) in &before {
            ensure!(
                now.get(p).is_some_and(|n| n >= offset),
                "{p} went back from {offset} to {:?}",
                now.get(p)
            );
        }
        before = now;
    }
    producing.join().map_err(|_| anyhow::anyhow!("producer panicked"))??.ok()?;
    // The rest, in peace.
    let end = Instant::now() + LIMIT;
    loop {
        let d = client.groups().describe("storm").await?;
        let lag: i64 = d.offsets.iter().map(|o| o.lag).sum();
        if d.offsets.len() == 12 && lag == 0 && d.offsets.iter().all(|o| o.committed > 0) {
            break;
        }
        ensure!(Instant::now() < end, "the group did not get through: lag {lag}, {:?}", d.summary);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let got = members.lines()?;
    let missing = lines.iter().filter(|l| !got.contains_key(*l)).count();
    let others = got.keys().filter(|l| !l.contains('\t')).count();
    let twice = got.values().filter(|n| **n > 1).count();
    ensure!(missing == 0, "{missing} of {} lines are missing after {kills} kills", lines.len());
    ensure!(others == 0, "{others} lines that nobody wrote");
    let sum = |all: &mut dyn Iterator<Item = &String>| {
        // In no order: a sum of checksums.
        all.map(|l| u64::from(tidemill_types::entry::crc32c(&[l.as_bytes()]))).sum::<u64>()
    };
    let (sent, received) = (sum(&mut lines.iter()), sum(&mut got.keys()));
    ensure!(sent == received, "checksum {received:x} of what came, {sent:x} of what was sent");
    ensure!(kills >= 5, "only {kills} kills");
    #[expect(clippy::print_stdout, reason = "shown with --nocapture")]
    {
        println!("{} lines, {kills} kills, {twice} lines more than once", lines.len());
    }
    drop(members);
    cluster.stop()
}

async fn numbers(consumer: &mut GroupConsumer, seen: &mut BTreeMap<u64, u32>) -> Result<()> {
    for event in consumer.poll(Duration::from_millis(200)).await? {
        match event {
            GroupEvent::Read(tidemill_client::Event::Batch(b)) => {
                for r in &b.records {
                    let text = std::str::from_utf8(r.value.as_deref().unwrap_or_default())?;
                    *seen.entry(text.trim().parse()?).or_default() += 1;
                }
            }
            GroupEvent::Read(other) => bail!("unexpected: {other:?}"),
            GroupEvent::Assigned(_) | GroupEvent::Revoking(_) | GroupEvent::Lost(_) => {}
        }
    }
    Ok(())
}

/// The broker that coordinates the group dies with kill -9: the members go on, what was committed stays.
#[tokio::test(flavor = "multi_thread")]
async fn the_coordinators_broker_is_killed() -> Result<()> {
    let mut cluster = Cluster::start(Options { brokers: 3, ..Options::default() })?;
    at(&cluster, &["topic", "create", "n", "--partitions=6"], b"")?.ok()?;
    let client = client(&cluster.server()).await?;
    let config = || GroupConsumerConfig {
        commit: CommitMode::Auto { every: Duration::from_millis(100) },
        ..GroupConsumerConfig::new("g", ["n"])
    };
    let produce = |from: u32, to: u32| -> Result<()> {
        let text: String = (from..to).map(|n| format!("{n}\n")).collect();
        at(&cluster, &["produce", "n"], text.as_bytes())?.ok().map(drop)
    };
    produce(0, 3_000)?;
    let (mut a, mut b) = (client.group_consumer(config()).await?, client.group_consumer(config()).await?);
    let mut seen = BTreeMap::new();
    let end = Instant::now() + LIMIT;
    while seen.len() < 3_000 || a.assignment().len() != 3 || b.assignment().len() != 3 {
        ensure!(Instant::now() < end, "{} of 3000, {:?} {:?}", seen.len(), a.assignment(), b.assignment());
        numbers(&mut a, &mut seen).await?;
        numbers(&mut b, &mut seen).await?;
    }
    a.commit().await?;
    b.commit().await?;
    let before = committed(&client, "g").await?;
    ensure!(before.values().sum::<i64>() == 3_000, "{before:?}");
    let mut raw = raw_client(&cluster).await?;
    let found = raw.find_coordinator(v1::FindCoordinatorRequest { group: "g".into() }).await?.into_inner();
    // The first broker is the address that everybody knows: it comes back on its port.
    let old = cluster.pid(&found.name)?;
    cluster.kill(&found.name)?;
    produce(3_000, 6_000)?;
    while seen.len() < 6_000 {
        ensure!(Instant::now() < end, "only {} of 6000 after {} died", seen.len(), found.name);
        numbers(&mut a, &mut seen).await?;
        numbers(&mut b, &mut seen).await?;
    }
    cluster.restarted(&found.name, old)?;
    // Nobody lost a partition, so nothing was read twice.
    ensure!(seen.values().all(|n| *n == 1), "records came twice although no member left");
    a.close().await?;
    b.close().await?;
    let after = committed(&client, "g").await?;
    ensure!(after.values().sum::<i64>() == 6_000, "{after:?}");
    ensure!(before.iter().all(|(p, o)| after[p] >= *o), "{before:?} {after:?}");
    cluster.stop()
}

fn code<T>(r: Result<T, tonic::Status>) -> Option<ErrorCode> {
    tidemill_proto::convert::code_of(&r.err()?).map(|c| c.0)
}

async fn raw_client(cluster: &Cluster) -> Result<v1::groups_client::GroupsClient<Channel>> {
    let channel = Channel::from_shared(cluster.server())?.connect().await?;
    Ok(v1::groups_client::GroupsClient::new(channel))
}

struct Raw(v1::groups_client::GroupsClient<Channel>);

impl Raw {
    fn join(member: &str, incarnation: u64) -> v1::JoinGroupRequest {
        v1::JoinGroupRequest {
            group: "g".into(),
            member: member.into(),
            incarnation,
            attempt: 1,
            subscription: Some(v1::Subscription { topics: vec!["t".into()], pattern: String::new() }),
            ..v1::JoinGroupRequest::default()
        }
    }

    async fn commit(
        &mut self,
        member: &str,
        epoch: u64,
        offset: i64,
    ) -> Result<Result<Option<String>, ErrorCode>> {
        let offsets =
            vec![v1::OffsetToCommit { topic: "t".into(), partition: 0, offset, ..Default::default() }];
        let request = v1::CommitOffsetsRequest { group: "g".into(), member: member.into(), epoch, offsets };
        match self.0.commit_offsets(request).await {
            Ok(r) => {
                let first = r.into_inner().results.into_iter().next().context("a result")?;
                Ok(Ok(first.error.map(|e| e.code)))
            }
            Err(s) => {
                let shown = s.to_string();
                Ok(Err(code::<()>(Err(s)).with_context(|| shown)?))
            }
        }
    }
}

/// Unary calls, as a simple client makes them, and what is refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_coordinator_refuses_is_typed() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    at(&cluster, &["topic", "create", "t"], b"")?.ok()?;
    at(&cluster, &["produce", "t"], b"a\nb\nc\n")?.ok()?;
    let mut raw = Raw(raw_client(&cluster).await?);
    // The first call makes the internal topic: until its coordinators are there, the answer is to come again.
    let end = Instant::now() + LIMIT;
    let first = loop {
        let answer = raw.commit("m", 1, 1).await?;
        match answer {
            Err(ErrorCode::NoOwner | ErrorCode::NotReady) if Instant::now() < end => {}
            answer => break answer,
        }
    };
    ensure!(first == Err(ErrorCode::UnknownGroup), "{first:?}");
    let a = raw.0.join_group(Raw::join("m", 7)).await?.into_inner();
    ensure!(a.assigned.len() == 1 && a.assigned[0].topic == "t", "{a:?}");
    // The same join again, as after a lost answer; and another process with the same id.
    ensure!(raw.0.join_group(Raw::join("m", 7)).await?.into_inner() == a);
    ensure!(code(raw.0.join_group(Raw::join("m", 8)).await) == Some(ErrorCode::MemberInUse));
    ensure!(raw.commit("m", a.epoch, 2).await? == Ok(None));
    ensure!(raw.commit("m", a.epoch, 4).await? == Ok(Some("OFFSET_OUT_OF_RANGE".into())));
    ensure!(raw.commit("m", a.epoch, -1).await? == Ok(Some("INVALID_ARGUMENT".into())));
    ensure!(raw.commit("m", a.epoch + 1, 3).await? == Err(ErrorCode::FencedMember));
    ensure!(raw.commit("other", 1, 3).await? == Err(ErrorCode::UnknownMember));
    ensure!(raw.commit("", 0, 3).await? == Err(ErrorCode::GroupNotEmpty));
    let reset = at(&cluster, &["group", "reset", "g", "--to=earliest", "--execute"], b"")?;
    ensure!(reset.code == Some(4) && reset.stderr.contains("GROUP_NOT_EMPTY"), "{reset:?}");
    let delete = at(&cluster, &["group", "delete", "g"], b"")?;
    ensure!(delete.code == Some(4) && delete.stderr.contains("GROUP_NOT_EMPTY"), "{delete:?}");
    // A new life: the old epoch is void, for heartbeats, commits and fetches alike.
    let again = v1::JoinGroupRequest { attempt: 2, ..Raw::join("m", 7) };
    let b = raw.0.join_group(again).await?.into_inner();
    ensure!(b.epoch > a.epoch && b.assigned.len() == 1, "{b:?}");
    ensure!(raw.commit("m", a.epoch, 3).await? == Err(ErrorCode::FencedMember));
    let beat =
        |epoch| v1::HeartbeatRequest { group: "g".into(), member: "m".into(), epoch, ..Default::default() };
    ensure!(code(raw.0.heartbeat(beat(a.epoch)).await) == Some(ErrorCode::FencedMember));
    raw.0.heartbeat(beat(b.epoch)).await?;
    let fetch =
        |epoch| v1::FetchOffsetsRequest { group: "g".into(), member: "m".into(), epoch, partitions: vec![] };
    ensure!(code(raw.0.fetch_offsets(fetch(a.epoch)).await) == Some(ErrorCode::FencedMember));
    let offsets = raw.0.fetch_offsets(fetch(b.epoch)).await?.into_inner().offsets;
    ensure!(offsets.len() == 1 && offsets[0].offset == 2, "{offsets:?}");
    // Modes that come later.
    let queue = v1::GroupConfig { mode: "queue".into(), ..v1::GroupConfig::default() };
    let client = client(&cluster.server()).await?;
    let refused: Result<u64, ClientError> = client.groups().configure("q", Some(queue), None).await;
    ensure!(refused.err().and_then(|e| e.code) == Some(ErrorCode::Unsupported));
    // Partitions that are added reach a member that only waits for its heartbeats.
    at(&cluster, &["topic", "alter", "t", "--partitions=3"], b"")?.ok()?;
    let end = Instant::now() + LIMIT;
    while raw.0.heartbeat(beat(b.epoch)).await?.into_inner().assigned.len() != 3 {
        ensure!(Instant::now() < end, "the new partitions did not come");
    }
    let leave =
        v1::LeaveGroupRequest { group: "g".into(), member: "m".into(), epoch: b.epoch, comes_back: false };
    raw.0.leave_group(leave.clone()).await?;
    ensure!(code(raw.0.leave_group(leave).await) == Some(ErrorCode::UnknownMember));
    ensure!(raw.commit("", 0, 3).await? == Ok(None), "empty now: from outside");
    cluster.stop()
}
