//! Everything dies at once.

use std::time::Instant;

use anyhow::Result;
use tidemill_e2e::{Options, check, read_all};

use crate::{LIMIT, Scene, TOPIC};

#[tokio::test(flavor = "multi_thread")]
async fn all_processes_are_killed_at_once_and_started_again() -> Result<()> {
    kill_and_start(Options::default()).await
}

/// `up` holds the directory and its members' locks, so it knows that the old processes are gone: it ends their sessions. Were
/// they waited for, this would take ten minutes, and fail.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_killed_processes_are_not_waited_for() -> Result<()> {
    let set = vec!["meta.session-ttl-ms=600000".to_owned()];
    kill_and_start(Options { brokers: 2, set, ..Options::default() }).await
}

async fn kill_and_start(options: Options) -> Result<()> {
    let mut scene = Scene::start(options, 4).await?;
    scene.load.progress(3_000, LIMIT).await?;
    scene.cluster.kill_all()?;
    let mut cluster = scene.cluster;
    let begin = Instant::now();
    let cluster = tokio::task::spawn_blocking(move || cluster.up().map(|()| cluster)).await??;
    let ready = begin.elapsed();
    scene.load.progress(1, LIMIT).await?;
    #[expect(clippy::print_stdout, reason = "shown with --nocapture, and when the test fails")]
    {
        println!("ready after {ready:?}, first acknowledgement seen after {:?}", begin.elapsed());
    }
    // The producer lives on: what it had under way is sent again and still written once.
    scene.load.progress(3_000, LIMIT).await?;
    let sent = scene.load.finish().await?;
    check(&sent, &read_all(&scene.client, TOPIC, LIMIT).await?)?;
    scene.cluster = cluster;
    scene.cluster.stop()
}
