//! Fuzzes the formats of a lane's folder.

#![no_main]

#[path = "../exercises/storage.rs"]
mod storage;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    storage::exercise(data);
});
