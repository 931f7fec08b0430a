//! The page on safety names tests that exist, for every rule and every mutation that it knows.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Names of all functions in test code of the workspace.
fn functions(folder: &Path, out: &mut BTreeSet<String>) {
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !["target", ".git", "node_modules"].contains(&name) {
                functions(&path, out);
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut test = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    test = true;
                } else if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))
                    && std::mem::take(&mut test)
                {
                    out.insert(rest.split('(').next().unwrap().to_owned());
                } else if !line.starts_with("#[") && !line.starts_with("//") {
                    test = false;
                }
            }
        }
    }
}

#[test]
fn every_test_that_the_page_names_exists_and_every_rule_names_one() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(top.join("docs/safety.md")).unwrap();
    let mut tests = BTreeSet::new();
    functions(&top, &mut tests);
    assert!(tests.len() > 500, "few tests were found: {}", tests.len());
    let mut rules = BTreeSet::new();
    let mut named = 0;
    for row in page.lines().filter(|l| l.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let last = cells.last().unwrap();
        let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if !names.iter().all(|n| n.contains('_')) {
            continue;
        }
        for name in &names {
            assert!(tests.contains(*name), "docs/safety.md names the test `{name}`, which does not exist");
            named += 1;
        }
        if let Some(rule) = cells[0].strip_prefix('R').and_then(|n| n.parse::<u32>().ok()) {
            assert!(!names.is_empty(), "R{rule} names no test");
            rules.insert(rule);
        }
    }
    assert_eq!(rules, (1..=28).collect(), "each rule has a row");
    assert!(named > 80, "only {named} tests are named");
}
