//! Replays the fuzzer's corpus of the metadata without the fuzzer. `UPDATE_CORPUS=1` adds what the golden bytes have and it has not.

#[path = "../../../../fuzz/exercises/metadata.rs"]
mod metadata;

use std::{collections::BTreeMap, fs, path::Path};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/metadata");

/// The golden bytes with the choice of their kind in front, by the name of a file.
fn seeds() -> BTreeMap<String, Vec<u8>> {
    let golden = include_str!("golden.txt");
    golden
        .lines()
        .filter_map(|line| {
            let (name, hex) = line.rsplit_once(' ')?;
            let choice = match name.split(' ').next()? {
                "command" | "outcome" => 0,
                "reply" | "rejection" => 1,
                "query" => 2,
                "answer" => 3,
                "change" => 4,
                n if n.starts_with("snapshot") => 7,
                _ => return None,
            };
            let bytes = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap());
            let file = name.replace([' ', '/'], "-").to_lowercase();
            Some((file, std::iter::once(choice).chain(bytes).collect()))
        })
        .collect()
}

#[test]
fn every_golden_sample_stands_in_the_corpus_and_is_understood() {
    let seeds = seeds();
    assert!(seeds.len() > 60, "{}", seeds.len());
    for (name, bytes) in seeds {
        assert_eq!(metadata::exercise(&bytes), 1, "{name}");
        let path = Path::new(FOLDER).join(&name);
        if std::env::var_os("UPDATE_CORPUS").is_some() && !path.exists() {
            fs::create_dir_all(FOLDER).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(path.exists(), "{name} is not in the corpus: UPDATE_CORPUS=1 adds it");
    }
}

#[test]
fn the_corpus_of_the_fuzzer_passes() {
    let mut understood = 0;
    for file in fs::read_dir(FOLDER).unwrap() {
        let data = fs::read(file.unwrap().path()).unwrap();
        understood += metadata::exercise(&data);
        // Also what a fuzzer does first.
        for n in 0..data.len().min(200) {
            metadata::exercise(&data[..n]);
            for bit in [0, 3, 7] {
                let mut flipped = data.clone();
                flipped[n] ^= 1 << bit;
                metadata::exercise(&flipped);
            }
        }
    }
    assert!(understood > 60, "{understood}");
}
