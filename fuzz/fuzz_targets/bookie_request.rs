//! Fuzzes the requests to a bookie.

#![no_main]

#[path = "../exercises/bookie_request.rs"]
mod bookie_request;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    bookie_request::exercise(data);
});
