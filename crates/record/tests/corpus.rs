//! Replays the fuzzer's corpus without the fuzzer.

#[path = "../../../fuzz/exercises/record_batch.rs"]
mod record_batch;

#[test]
fn the_corpus_of_the_fuzzer_passes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/record_batch");
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let data = std::fs::read(file.unwrap().path()).unwrap();
        read += record_batch::exercise(&data);
        // Also what a fuzzer does first.
        for n in 0..data.len().min(256) {
            record_batch::exercise(&data[..n]);
        }
    }
    assert!(read >= 50, "{read} records were read");
}
