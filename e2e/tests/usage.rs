//! What a user types, from the first topic to the errors, with the real binary.

use std::{
    collections::BTreeSet,
    fmt::Write,
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tidemill_e2e::{Cluster, Finished, Options, binary, run, tidemill};

const LIMIT: Duration = Duration::from_secs(90);

fn lines(from: u32, to: u32) -> String {
    (from..=to).fold(String::new(), |mut s, n| {
        let _infallible = writeln!(s, "{n}");
        s
    })
}

fn at(cluster: &Cluster, args: &[&str], input: &[u8]) -> Result<Finished> {
    let server = format!("--server={}", cluster.server());
    let mut all = args.to_vec();
    all.push(&server);
    tidemill(&all, input, LIMIT)
}

/// The lines of the output as numbers, each once.
fn numbers(out: &str) -> Result<BTreeSet<u32>> {
    let mut set = BTreeSet::new();
    for line in out.lines() {
        let n = line.parse().with_context(|| format!("line {line:?}"))?;
        ensure!(set.insert(n), "{n} is there twice");
    }
    Ok(set)
}

#[test]
fn lines_in_are_lines_out_also_after_everything_was_killed_in_the_middle() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    at(&cluster, &["topic", "create", "orders", "--partitions=4"], b"")?.ok()?;
    at(&cluster, &["produce", "orders"], lines(1, 100_000).as_bytes())?.ok()?;
    let got = at(&cluster, &["consume", "orders", "--until-end"], b"")?.ok()?;
    ensure!(numbers(&got.stdout)? == (1..=100_000).collect(), "not the same lines");

    // One partition keeps the order of the lines.
    at(&cluster, &["topic", "create", "one"], b"")?.ok()?;
    at(&cluster, &["produce", "one"], lines(1, 50_000).as_bytes())?.ok()?;
    let got = at(&cluster, &["consume", "one", "--until-end"], b"")?.ok()?;
    ensure!(got.stdout == lines(1, 50_000), "order is lost");

    // Everything is killed while a second run is under way; the producer waits for the cluster and reports the truth.
    let server = cluster.server();
    let producing = thread::spawn(move || {
        let args = ["produce", "orders", "--rate=100000", "--server", server.as_str()];
        tidemill(&args, lines(100_001, 300_000).as_bytes(), LIMIT)
    });
    let full = || -> Result<usize> {
        Ok(at(&cluster, &["consume", "orders", "--until-end"], b"")?.ok()?.stdout.lines().count())
    };
    while full()? < 120_000 {
        ensure!(!producing.is_finished(), "the second run was too fast to be interrupted");
    }
    cluster.kill_all()?;
    cluster.up()?;
    let report = producing.join().map_err(|_| anyhow::anyhow!("producer panicked"))??.ok()?;
    let got = at(&cluster, &["consume", "orders", "--until-end"], b"")?.ok()?;
    ensure!(
        numbers(&got.stdout)? == (1..=300_000).collect(),
        "not the same lines; report: {}",
        report.stderr
    );
    cluster.stop()
}

#[test]
fn verify_finds_nothing_wrong_while_members_die() -> Result<()> {
    let cluster = Cluster::start(Options { brokers: 2, ..Options::default() })?;
    let server = cluster.server();
    let verify = thread::spawn(move || {
        tidemill(&["verify", "--duration=12s", "--server", server.as_str()], b"", LIMIT)
    });
    for name in ["bookie-0", "broker-1", "bookie-2"] {
        let old = cluster.pid(name)?;
        cluster.kill(name)?;
        cluster.restarted(name, old)?;
    }
    let done = verify.join().map_err(|_| anyhow::anyhow!("verify panicked"))??;
    done.ok().map(drop)
}

#[test]
fn commands_show_what_is_there_and_refuse_what_is_not() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    at(&cluster, &["topic", "create", "a", "--partitions=2", "--retention=1h"], b"")?.ok()?;
    at(&cluster, &["produce", "a", "--partition=0"], b"x\ny\n")?.ok()?;
    let json = at(&cluster, &["consume", "a", "--until-end", "-o", "json"], b"")?.ok()?.stdout;
    let first: serde_json::Value = serde_json::from_str(json.lines().next().context("no line")?)?;
    ensure!((first["value"].as_str(), first["offset"].as_i64()) == (Some("x"), Some(0)), "{first}");
    let ledgers = at(&cluster, &["ledger", "list", "--topic=a", "-o", "json"], b"")?.ok()?.stdout;
    ensure!(
        serde_json::from_str::<serde_json::Value>(&ledgers)?.as_array().is_some_and(|l| !l.is_empty()),
        "{ledgers}"
    );
    let described = at(&cluster, &["partition", "describe", "a", "0"], b"")?.ok()?.stdout;
    ensure!(described.contains("high watermark: 2"), "{described}");
    at(&cluster, &["topic", "alter", "a", "--partitions=3"], b"")?.ok()?;

    for (args, code, says) in [
        (vec!["topic", "create", "a", "--partitions=2"], 4, "TOPIC_EXISTS"),
        (vec!["topic", "create", "b/c"], 2, "INVALID_TOPIC_NAME"),
        (vec!["topic", "create", "b", "--config=colour=red"], 2, "UNKNOWN_CONFIG_KEY"),
        (vec!["topic", "create", "b", "--partitions=0"], 2, "--partitions"),
        (vec!["topic", "alter", "a", "--partitions=1"], 1, "partitions"),
        (vec!["topic", "describe", "nothing"], 3, "UNKNOWN_TOPIC"),
        (vec!["topic", "delete", "nothing"], 3, "UNKNOWN_TOPIC"),
        (vec!["produce", "nothing"], 3, "UNKNOWN_TOPIC"),
        (vec!["produce", "a", "--partition=9"], 1, "UNKNOWN_PARTITION"),
        (vec!["consume", "nothing", "--until-end"], 3, "UNKNOWN_TOPIC"),
        (vec!["consume", "a", "--group=g h"], 2, "INVALID_GROUP_NAME"),
        (vec!["consume", "nothing", "--group=g"], 3, "UNKNOWN_TOPIC"),
        (vec!["group", "describe", "nothing"], 3, "UNKNOWN_GROUP"),
        (vec!["ledger", "inspect", "99999"], 3, "UNKNOWN_LEDGER"),
    ] {
        let done = at(&cluster, &args, b"x\n")?;
        ensure!(done.code == Some(code) && done.stderr.contains(says), "{args:?}: {done:?}");
    }
    at(&cluster, &["topic", "delete", "a"], b"")?.ok()?;
    cluster.stop()
}

#[test]
fn a_start_that_cannot_work_says_why() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = format!("--data-dir={}", dir.path().join("d").display());
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let listen = format!("--listen={}", taken.local_addr()?);
    let done = tidemill(&["up", &data, &listen, "--http=127.0.0.1:0"], b"", LIMIT)?;
    ensure!(done.code == Some(2) && done.stderr.contains("in use"), "{done:?}");

    let file = dir.path().join("file");
    std::fs::write(&file, b"")?;
    let not_a_folder = format!("--data-dir={}", file.display());
    let done = tidemill(&["up", &not_a_folder, "--listen=127.0.0.1:0", "--http=127.0.0.1:0"], b"", LIMIT)?;
    ensure!(done.code == Some(2) && done.stderr.contains("data directory"), "{done:?}");

    let config = dir.path().join("bookie.yaml");
    std::fs::write(&config, "data-dir: /x\n")?;
    let config = format!("--config={}", config.display());
    let done = tidemill(&["bookie", &config], b"", LIMIT)?;
    ensure!(done.code == Some(2) && done.stderr.contains("data-dirs"), "{done:?}");

    let shown = tidemill(&["broker", "--print-config", "--zone=z1"], b"", LIMIT)?.ok()?.stdout;
    ensure!(shown.contains("zone: \"z1\"  # flag"), "{shown}");
    Ok(())
}

#[test]
fn what_could_not_be_printed_is_not_committed() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    at(&cluster, &["topic", "create", "t", "--partitions=1"], b"")?.ok()?;
    at(&cluster, &["produce", "t"], lines(1, 10).as_bytes())?.ok()?;
    let consume = ["consume", "t", "--group=g", "--until-end"];
    let mut full = Command::new("sh");
    full.args(["-c", "exec \"$0\" \"$@\" >/dev/full"]).arg(binary()?).args(consume);
    full.arg(format!("--server={}", cluster.server()));
    let done = run(&mut full, b"", LIMIT)?;
    ensure!(done.code == Some(1) && done.stderr.contains("standard output"), "{done:?}");
    let again = at(&cluster, &consume, b"")?.ok()?.stdout;
    ensure!(numbers(&again)? == (1..=10).collect(), "{again:?}");
    cluster.stop()
}

#[test]
fn the_system_may_choose_the_ports() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = format!("--data-dir={}", dir.path().join("d").display());
    let mut up = Command::new(binary()?)
        .args(["up", &data, "--listen=127.0.0.1:0", "--http=127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let said = BufReader::new(up.stderr.take().context("stderr")?).lines();
    let (tell, heard) = mpsc::channel();
    let listener = thread::spawn(move || {
        for line in said.map_while(Result::ok) {
            if let Some(rest) = line.strip_prefix("tidemill serves on ") {
                drop(tell.send(rest.split_whitespace().next().unwrap_or_default().to_owned()));
            }
        }
    });
    let result = heard.recv_timeout(LIMIT).context("it does not serve").and_then(|address| {
        ensure!(!address.ends_with(":0"), "{address}");
        tidemill(&["topic", "create", "t", &format!("--server={address}")], b"", LIMIT)?.ok().map(drop)
    });
    run(Command::new("kill").arg(up.id().to_string()), b"", LIMIT)?.ok()?;
    up.wait()?;
    drop(listener.join());
    result
}

#[test]
fn a_second_process_on_one_directory_is_refused() -> Result<()> {
    let mut cluster = Cluster::start(Options::default())?;
    let data = format!("--data-dir={}", cluster.data().display());
    let done = tidemill(&["up", &data, "--listen=127.0.0.1:0", "--http=127.0.0.1:0"], b"", LIMIT)?;
    ensure!(done.code == Some(4) && done.stderr.contains("another process"), "{done:?}");
    let bookie = format!("--data-dirs={}", cluster.data().join("bookie-0").display());
    let done = tidemill(&["bookie", &bookie, "--listen=127.0.0.1:0", "--meta=127.0.0.1:1"], b"", LIMIT)?;
    ensure!(done.code == Some(4) && done.stderr.contains("in use by another process"), "{done:?}");
    let shown = tidemill(&["bookie", "inspect", &bookie.replace("data-dirs", "data-dir")], b"", LIMIT)?;
    ensure!(shown.code == Some(4), "{shown:?}");
    cluster.stop()
}
