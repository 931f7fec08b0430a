//! Chaos for a bounded time: members are killed, frozen, restarted one after another, a bit flips at rest, a disk is wiped, all under load. Then
//! everything acknowledged is there and all replicas are equal. Longer: `cargo xtask chaos --minutes N`.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tidemill_client::Client;
use tidemill_e2e::{
    Cluster, Load, Options, bookie_id, check, client, compare_replicas, declare_lost, read_all, repaired,
};

/// A debug build on two loaded cores: longer than this is a hang.
const LIMIT: Duration = Duration::from_secs(180);
const TOPIC: &str = "chaos";
const COPIES: usize = 3;
const BOOKIES: u8 = 4;
/// Without a word about it.
const MINUTES: u64 = 2;

/// What is done to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Kill,
    Freeze,
    Terminate,
    /// A bit of a bookie's segment flips, and the bookie restarts.
    Flip,
    /// A bookie's disk is emptied under it.
    Wipe,
}

/// splitmix64: the blows follow from the seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % sides as u64).unwrap_or(0)
    }
}

fn number(name: &str, default: u64) -> Result<u64> {
    std::env::var(name).map_or(Ok(default), |v| v.parse().with_context(|| format!("{name}={v}")))
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "shown with --nocapture, and when the test fails")]
async fn blow_after_blow_loses_nothing() -> Result<()> {
    let minutes = number("TIDEMILL_CHAOS_MINUTES", MINUTES)?;
    let mut dice = Dice(number("TIDEMILL_CHAOS_SEED", u64::from(std::process::id()))?);
    println!("{minutes} minutes, again with TIDEMILL_CHAOS_SEED={}", dice.0);
    let set = vec![
        "meta.compare-every-ms=2000".to_owned(),
        "meta.repair-grace-ms=2000".to_owned(),
        "bookie.segment-bytes=33554432".to_owned(),
        "bookie.scrub-interval-ms=5000".to_owned(),
    ];
    let options = Options { bookies: BOOKIES, brokers: 2, metas: 3, restart: true, set };
    let cluster = tokio::task::spawn_blocking(|| Cluster::start(options)).await??;
    let client = client(&cluster.server()).await?;
    let small = ("roll.bytes".to_owned(), (1u32 << 20).to_string());
    client.admin().create_topic(TOPIC, 4, [small], false).await?;
    let load = Load::start(&client, TOPIC, 200).await?;
    load.progress(2_000, LIMIT).await?;
    let end = Instant::now() + Duration::from_secs(minutes * 60);
    let mut blows = 0;
    while Instant::now() < end {
        let blow =
            [Blow::Kill, Blow::Freeze, Blow::Terminate, Blow::Kill, Blow::Flip, Blow::Wipe][dice.roll(6)];
        let member = member(&mut dice, blow);
        println!("{blow:?} {member}");
        strike(&cluster, &client, blow, &member, &mut dice)
            .await
            .with_context(|| format!("{blow:?} {member}"))?;
        load.progress(300, LIMIT).await.with_context(|| format!("after {blow:?} {member}"))?;
        blows += 1;
    }
    load.progress(1_000, LIMIT).await?;
    let sent = load.finish().await?;
    check(&sent, &read_all(&client, TOPIC, LIMIT).await?)?;
    repaired(&client, LIMIT).await?;
    let compared = compare_replicas(&client, COPIES).await?;
    println!("{blows} blows, {} records, {compared:?}", sent.iter().map(|s| s.acked.len()).sum::<usize>());
    ensure!(blows >= minutes, "only {blows} blows");
    ensure!(compared.ledgers > 0, "no ledger was compared");
    let mut cluster = cluster;
    tokio::task::spawn_blocking(move || cluster.stop()).await?
}

fn member(dice: &mut Dice, blow: Blow) -> String {
    let bookie = format!("bookie-{}", dice.roll(usize::from(BOOKIES)));
    match (blow, dice.roll(3)) {
        (Blow::Flip | Blow::Wipe, _) | (_, 0) => bookie,
        (_, 1) => format!("broker-{}", dice.roll(2)),
        _ => format!("meta-{}", dice.roll(3)),
    }
}

async fn strike(cluster: &Cluster, client: &Client, blow: Blow, member: &str, dice: &mut Dice) -> Result<()> {
    let pid = cluster.pid(member)?;
    match blow {
        Blow::Kill => cluster.kill(member)?,
        Blow::Terminate => cluster.terminate(member)?,
        Blow::Freeze => {
            cluster.freeze(member)?;
            // How long it is frozen is what the blow is.
            tokio::time::sleep(Duration::from_millis(200 + 100 * dice.roll(60) as u64)).await;
            return cluster.thaw(member);
        }
        Blow::Flip => {
            // One loss at a time is what two acknowledged copies of three survive.
            repaired(client, LIMIT).await?;
            flip(cluster, member, dice)?;
            cluster.kill(member)?;
            cluster.restarted(member, pid)?;
            return repaired(client, LIMIT).await;
        }
        Blow::Wipe => {
            repaired(client, LIMIT).await?;
            let old = bookie_id(client, member).await?;
            let gone = cluster.root().join(format!("gone-{old}"));
            // Away from under the process, so that the next start of it finds nothing.
            fs::rename(cluster.data().join(member), gone)?;
            cluster.kill(member)?;
            cluster.restarted(member, pid)?;
            declare_lost(client, &old, LIMIT).await?;
            return repaired(client, LIMIT).await;
        }
    }
    cluster.restarted(member, pid)
}

/// Flips a bit in the middle of a segment.
fn flip(cluster: &Cluster, member: &str, dice: &mut Dice) -> Result<()> {
    let mut segments: Vec<_> = fs::read_dir(cluster.data().join(member))?
        .filter_map(|i| i.ok().map(|i| i.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "seg"))
        .collect();
    segments.sort();
    let path = segments.get(dice.roll(segments.len().max(1))).context("no segment")?;
    let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
    let at = 4_096 + dice.roll(64 << 10) as u64;
    let mut byte = [0];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, at)?;
    byte[0] ^= 1 << dice.roll(8);
    std::os::unix::fs::FileExt::write_all_at(&file, &byte, at)?;
    Ok(())
}
