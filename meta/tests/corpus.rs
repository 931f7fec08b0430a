//! Replays the fuzzer's corpus without the fuzzer.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../fuzz/exercises/raft_log.rs"]
mod raft_log;

#[test]
fn the_raft_log_corpus_passes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/raft_log");
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let data = std::fs::read(file.unwrap().path()).unwrap();
        read += raft_log::exercise(&data);
        // Also what a fuzzer does first.
        for n in 0..data.len().min(256) {
            raft_log::exercise(&data[..n]);
            let mut flipped = data.clone();
            flipped[n] ^= 0x10;
            raft_log::exercise(&flipped);
        }
    }
    assert!(read >= 10, "{read} were understood");
}
