//! Replays the fuzzer's corpus without the fuzzer.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../fuzz/exercises/bookie_request.rs"]
mod bookie_request;

#[test]
fn the_bookie_request_corpus_passes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/bookie_request");
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let data = std::fs::read(file.unwrap().path()).unwrap();
        read += bookie_request::exercise(&data);
        // Also what a fuzzer does first.
        for n in 0..data.len().min(256) {
            bookie_request::exercise(&data[..n]);
            let mut flipped = data.clone();
            flipped[n] ^= 0x10;
            bookie_request::exercise(&flipped);
        }
    }
    assert!(read >= 8, "{read} were understood");
}
