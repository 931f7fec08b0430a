//! Links between the pages of the project lead somewhere.

use std::path::{Path, PathBuf};
use std::{fs, io};

fn pages(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if !name.starts_with('.') && !name.starts_with("target") && !path.join("CACHEDIR.TAG").exists() {
                pages(&path, found)?;
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    Ok(())
}

/// The targets of `[text](target)` that are files of the project, without their fragments.
fn targets(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty())
        .collect()
}

#[test]
fn targets_are_found() {
    let text = "[a](b.md) and [c](../d/e.md#f), [g](https://h.example/), [i](#j) [k](l)";
    assert_eq!(targets(text), ["b.md", "../d/e.md", "l"]);
}

#[test]
fn every_link_leads_to_a_file_or_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    pages(&root, &mut found).unwrap();
    assert!(found.iter().any(|page| page.ends_with("ARCHITECTURE.md")), "{found:?}");
    let mut broken = Vec::new();
    for page in &found {
        let text = fs::read_to_string(page).unwrap();
        for target in targets(&text) {
            if !page.parent().is_some_and(|dir| dir.join(target).exists()) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
