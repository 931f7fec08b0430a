//! Fuzzes commands, answers and snapshots of the metadata.

#![no_main]

#[path = "../exercises/metadata.rs"]
mod metadata;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    metadata::exercise(data);
});
