//! `cargo xtask sizes`: files stay small. Lines of tests do not count.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::workspace::Workspace;

/// Above this many lines a file is named.
const SOFT: usize = 400;
/// Above this many lines the check fails.
const HARD: usize = 800;
/// The same for a `main.rs`, which only puts things together.
const HARD_MAIN: usize = 60;
/// The median that the project aims at.
const MEDIAN: usize = 150;

/// Checks all source files of the checkout and says whether none is too long.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<bool> {
    let mut files = Vec::new();
    collect(workspace.root(), workspace.root(), &mut files)?;
    files.sort_unstable_by(|a, b| b.cmp(a));
    let mut clean = true;
    for (lines, path) in &files {
        let hard = if path.ends_with("main.rs") { HARD_MAIN } else { HARD };
        if *lines > hard {
            println!("sizes: {path}: {lines} lines, more than {hard}");
            clean = false;
        } else if *lines > SOFT {
            println!("sizes: note: {path}: {lines} lines, more than {SOFT}");
        }
    }
    let median = files.get(files.len() / 2).map_or(0, |(lines, _)| *lines);
    println!("sizes: {} files, median {median} lines (aim: at most {MEDIAN})", files.len());
    Ok(clean)
}

/// Source files under `dir` with their lines, except what is hidden, built or a test.
fn collect(root: &Path, dir: &Path, files: &mut Vec<(usize, String)>) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let left_out = name.starts_with('.') || name.starts_with("target") || name == "tests";
            if !left_out && !path.join("CACHEDIR.TAG").exists() {
                collect(root, &path, files)?;
            }
        } else if kind.is_file() && is_source(&name) {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            files.push((lines(&text), shown));
        }
    }
    Ok(())
}

fn is_source(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let test = stem == "tests" || stem.ends_with("_test") || stem.ends_with("_tests");
    !test && ["rs", "proto", "py", "go"].contains(&extension)
}

/// Lines of a file without its `#[cfg(test)]` items. Relies on rustfmt: an item that starts in the first column ends at
/// the next line that closes in the first column, or on its own line.
fn lines(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text.lines();
    while let Some(line) = rest.next() {
        if line == "#[cfg(test)]" {
            let first = rest.by_ref().find(|line| !line.starts_with("#["));
            if first.is_some_and(|first| !first.ends_with([';', '}'])) {
                rest.by_ref().find(|line| line.starts_with(['}', ')', ']']));
            }
        } else {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let text = "fn a() {\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(lines(text), 4);
        assert_eq!(lines("#[cfg(test)]\n#[path = \"t.rs\"]\nmod tests;\nfn c() {}\n"), 1);
        assert_eq!(lines("fn a() {}\n#[cfg(test)]\nuse b::C;\nfn d() {}\n"), 2);
    }

    #[test]
    fn generated_and_foreign_files_are_no_source() {
        for (name, expected) in
            [("a.rs", true), ("a.proto", true), ("tests.rs", false), ("a_test.go", false), ("a", false)]
        {
            assert_eq!(is_source(name), expected, "{name}");
        }
    }

    #[test]
    fn the_files_of_this_crate_are_found() {
        let workspace = Workspace::find().unwrap();
        let mut files = Vec::new();
        collect(workspace.root(), &workspace.root().join("xtask"), &mut files).unwrap();
        assert!(files.iter().any(|(lines, path)| path == "xtask/src/sizes.rs" && *lines > 50), "{files:?}");
    }
}
