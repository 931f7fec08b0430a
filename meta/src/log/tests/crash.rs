//! What a restart finds after crashes and damage.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use openraft::{
    EntryPayload, RaftLogReader,
    storage::{IOFlushed, RaftLogStorage},
};
use tidemill_runtime::io::{CrashPlan, Disk, Fault, OpKind, OpenMode, SimDisk};
use tokio::sync::oneshot;

use crate::{
    MetaStartError,
    log::LogStore,
    types::{Entry, Proposal, TypeConfig, Vote, log_id, term_of},
};

const DIR: &str = "/m";

fn disk(seed: u64) -> Arc<SimDisk> {
    let disk = SimDisk::new(seed, 1 << 30);
    disk.create_dir(Path::new(DIR)).unwrap();
    Arc::new(disk)
}

fn open(disk: &Arc<SimDisk>) -> Result<(LogStore, oneshot::Receiver<()>), MetaStartError> {
    LogStore::open(disk.clone(), DIR.into(), 7, (), Box::new(|_| {}))
}

fn entry(term: u64, index: u64, len: usize) -> Entry {
    let payload = Bytes::from(vec![u8::try_from(index % 251).unwrap(); len]);
    Entry { log_id: log_id(term, index), payload: EntryPayload::Normal(Proposal(payload)) }
}

/// Appends and waits until it is durable.
async fn append(log: &mut LogStore, entries: Vec<Entry>) -> std::io::Result<()> {
    let (tx, rx) = <openraft::alias::OneshotOf<TypeConfig> as openraft::async_runtime::Oneshot>::channel();
    log.append(entries, IOFlushed::signal(tx)).await?;
    rx.await.unwrap()
}

async fn indexes(log: &mut LogStore) -> Vec<(u64, u64)> {
    let mut reader = log.get_log_reader().await;
    let entries = reader.try_get_log_entries(..).await.unwrap();
    entries.iter().map(|e| (term_of(&e.log_id), e.log_id.index)).collect()
}

/// Ends the writer, so that the disk stands still.
async fn close(log: LogStore, ended: oneshot::Receiver<()>) {
    log.close();
    drop(log);
    ended.await.unwrap();
}

fn log_files(disk: &SimDisk) -> Vec<String> {
    disk.list(&Path::new(DIR).join("log")).unwrap().into_iter().map(|i| i.name).collect()
}

#[tokio::test]
async fn everything_durable_is_found_again() {
    let d = disk(1);
    let (mut log, ended) = open(&d).unwrap();
    append(&mut log, (0..10).map(|i| entry(1, i, 100)).collect()).await.unwrap();
    log.save_vote(&Vote::new_committed(3, 9)).await.unwrap();
    log.truncate_after(Some(log_id(1, 7))).await.unwrap();
    append(&mut log, (8..12).map(|i| entry(3, i, 5_000)).collect()).await.unwrap();
    log.save_committed(Some(log_id(3, 10))).await.unwrap();
    log.purge(log_id(1, 4)).await.unwrap();
    close(log, ended).await;
    let (mut log, ended) = open(&d).unwrap();
    let want: Vec<_> = (5..8).map(|i| (1, i)).chain((8..12).map(|i| (3, i))).collect();
    assert_eq!(indexes(&mut log).await, want);
    let state = log.get_log_state().await.unwrap();
    assert_eq!(state.last_purged_log_id, Some(log_id(1, 4)));
    assert_eq!(state.last_log_id, Some(log_id(3, 11)));
    assert_eq!(log.read_committed().await.unwrap(), Some(log_id(3, 10)));
    let mut reader = log.get_log_reader().await;
    assert_eq!(reader.read_vote().await.unwrap(), Some(Vote::new_committed(3, 9)));
    assert_eq!(
        reader.limited_get_log_entries(9, 12).await.unwrap(),
        (9..12).map(|i| entry(3, i, 5_000)).collect::<Vec<_>>()
    );
    close(log, ended).await;
}

#[tokio::test]
async fn a_crash_loses_nothing_that_was_answered_and_tears_only_the_tail() {
    for seed in 0..60 {
        let d = disk(seed);
        let (mut log, ended) = open(&d).unwrap();
        append(&mut log, (0..20).map(|i| entry(1, i, 700)).collect()).await.unwrap();
        // The power goes somewhere in the middle of what follows.
        d.lose_power_after(seed % 6);
        let mut answered = 20;
        for i in 20..26 {
            match append(&mut log, vec![entry(1, i, 3_000)]).await {
                Ok(()) => answered = i + 1,
                Err(_) => break,
            }
        }
        d.crash(if seed % 2 == 0 { CrashPlan::Random } else { CrashPlan::Torn });
        close(log, ended).await;
        let (mut log, ended) = open(&d).unwrap();
        let found = indexes(&mut log).await;
        let n = u64::try_from(found.len()).unwrap();
        assert!(n >= answered, "seed {seed}: {answered} answered, {n} found");
        assert_eq!(found, (0..n).map(|i| (1, i)).collect::<Vec<_>>(), "seed {seed}");
        append(&mut log, vec![entry(2, n, 10)]).await.unwrap();
        close(log, ended).await;
        let (mut log, ended) = open(&d).unwrap();
        assert_eq!(indexes(&mut log).await.last(), Some(&(2, n)), "seed {seed}");
        close(log, ended).await;
    }
}

#[tokio::test]
async fn a_torn_tail_is_dropped_and_damage_before_it_refused() {
    let d = disk(3);
    let (mut log, ended) = open(&d).unwrap();
    for i in 0..5 {
        append(&mut log, vec![entry(1, i, 1_000)]).await.unwrap();
    }
    close(log, ended).await;
    let path = Path::new(DIR).join("log").join(&log_files(&d)[0]);
    let torn = d.fork(4);
    let len = torn.open(&path, OpenMode::Read).unwrap().len().unwrap();
    torn.truncate(&path, len - 100).unwrap();
    let (mut log, ended) = open(&Arc::new(torn)).unwrap();
    assert_eq!(indexes(&mut log).await.len(), 4);
    close(log, ended).await;
    // In the third record: those behind it say that it was durable.
    d.flip_bit(&path, (64 + 2 * 1_040 + 300) * 8).unwrap();
    let e = open(&d).err().unwrap();
    let text = e.to_string();
    assert!(matches!(&e, MetaStartError::Corrupt { offset: 2_144, .. }), "{text}");
    assert!(text.contains("checksum") && text.contains("add it to the quorum again"), "{text}");
}

#[tokio::test]
async fn files_are_cut_purged_whole_and_a_missing_one_is_noticed() {
    let d = disk(5);
    let (mut log, ended) = open(&d).unwrap();
    for i in 0..10 {
        append(&mut log, vec![entry(1, i, 4 << 20)]).await.unwrap();
    }
    let files = log_files(&d);
    assert!(files.len() > 2, "{files:?}");
    let all = d.fork(6);
    log.purge(log_id(1, 5)).await.unwrap();
    assert!(log_files(&d).len() < files.len());
    log.purge(log_id(2, 30)).await.unwrap();
    assert_eq!(log_files(&d), Vec::<String>::new(), "a snapshot beyond the log");
    append(&mut log, vec![entry(2, 31, 8)]).await.unwrap();
    close(log, ended).await;
    let (mut log, ended) = open(&d).unwrap();
    assert_eq!(indexes(&mut log).await, [(2, 31)]);
    close(log, ended).await;
    all.remove(&Path::new(DIR).join("log").join(&files[1])).unwrap();
    let e = open(&Arc::new(all)).err().unwrap().to_string();
    assert!(e.contains("a file is missing"), "{e}");
}

#[tokio::test]
async fn a_failed_sync_is_final() {
    let d = disk(7);
    let (mut log, ended) = open(&d).unwrap();
    append(&mut log, vec![entry(1, 0, 10)]).await.unwrap();
    d.inject(Fault { kind: OpKind::Sync, after: 0, error: std::io::ErrorKind::Other });
    assert!(append(&mut log, vec![entry(1, 1, 10)]).await.is_err());
    let e = append(&mut log, vec![entry(1, 2, 10)]).await.unwrap_err().to_string();
    assert!(e.contains("cannot be written"), "the next one is refused although its sync would pass: {e}");
    assert!(log.save_vote(&Vote::new(5, 1)).await.is_err());
    close(log, ended).await;
}

#[tokio::test]
async fn old_entries_leave_memory_and_are_read_from_the_file() {
    let d = disk(8);
    let (mut log, ended) = open(&d).unwrap();
    for i in 0..40 {
        append(&mut log, vec![entry(1, i, 2 << 20)]).await.unwrap();
    }
    assert!(log.cached_bytes() <= 64 << 20, "{}", log.cached_bytes());
    let mut reader = log.get_log_reader().await;
    assert_eq!(
        reader.try_get_log_entries(0..2).await.unwrap(),
        vec![entry(1, 0, 2 << 20), entry(1, 1, 2 << 20)]
    );
    assert_eq!(reader.limited_get_log_entries(0, 40).await.unwrap().len(), 1, "one message of about 2 MiB");
    close(log, ended).await;
}
