//! Fuzzes the files of the raft log.

#![no_main]

#[path = "../exercises/raft_log.rs"]
mod raft_log;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    raft_log::exercise(data);
});
