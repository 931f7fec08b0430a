//! Fuzzes the record batch.

#![no_main]

#[path = "../exercises/record_batch.rs"]
mod record_batch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    record_batch::exercise(data);
});
