//! What the simulation itself has to keep: the same seed is the same run, and a loss is found.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::{fs, process::Command};

fn run(args: &[&str]) -> (bool, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_sim-cluster")).args(args).output().unwrap();
    (out.status.success(), String::from_utf8(out.stdout).unwrap())
}

/// L2b. The seed has crashes, cuts and slow disks in it.
#[test]
fn a_seed_gives_the_same_bytes_twice() {
    let dir = tempfile::tempdir().unwrap();
    let traces: Vec<Vec<u8>> = ["a", "b"]
        .iter()
        .map(|name| {
            let path = dir.path().join(name);
            let (ok, said) = run(&["--seed", "3", "--trace", path.to_str().unwrap()]);
            assert!(ok, "{said}");
            fs::read(path).unwrap()
        })
        .collect();
    assert!(traces[0].len() > 20_000, "a trace of {} bytes", traces[0].len());
    let text = String::from_utf8_lossy(&traces[0]);
    assert!(text.contains("fault: ") && text.contains("is Acked"), "nothing happened");
    assert!(traces[0] == traces[1], "the traces differ");
}

#[test]
fn two_seeds_are_two_runs() {
    let (a, b) = (run(&["--seed", "1", "--calm"]), run(&["--seed", "2", "--calm"]));
    assert!(a.0 && b.0, "{} {}", a.1, b.1);
    let digest = |s: &str| s.split("trace ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert_ne!(digest(&a.1), digest(&b.1));
}

/// All bookies lose their disks: no promise covers that, and no run may be called clean.
#[test]
fn a_lost_cluster_is_not_called_clean() {
    let (ok, said) = run(&["--seed", "1", "--sabotage"]);
    assert!(!ok, "{said}");
    assert!(said.contains("FAILED") && said.contains("cargo xtask sim --seed 1"), "{said}");
}
