//! `cargo xtask messages`: docs/protocol/messages.md, every message of every service field by field, out of `proto/`.

mod page;
mod parse;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::workspace::Workspace;

/// The page, from the top of the checkout.
const PAGE: &str = "docs/protocol/messages.md";

/// Writes the page. Green when it was so already, or is now.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<bool> {
    let path = workspace.root().join(PAGE);
    let page = render(workspace.root())?;
    if fs::read_to_string(&path).is_ok_and(|old| old == page) {
        println!("messages: {PAGE} is as the proto files say");
    } else {
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
        println!("messages: {PAGE} was written");
    }
    Ok(true)
}

fn render(root: &Path) -> anyhow::Result<String> {
    let mut paths = Vec::new();
    collect(&root.join("proto"), &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
        files.push((parse::parse(&text).with_context(|| shown.clone())?, shown));
    }
    Ok(page::page(&files))
}

fn collect(dir: &Path, out: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for item in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = item?.path();
        if path.is_dir() {
            collect(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "proto") {
            out.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_proto_files_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let page = render(&root).unwrap();
        let there = fs::read_to_string(root.join(PAGE)).unwrap();
        assert!(page == there, "{PAGE} is not up to date: run `cargo xtask messages`");
        assert!(page.matches("\n### ").count() > 150, "few messages were found");
    }

    #[test]
    fn no_field_is_left_without_a_word() {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE)).unwrap();
        let silent: Vec<&str> = page.lines().filter(|l| l.starts_with("| ") && l.ends_with("|  |")).collect();
        assert!(silent.is_empty(), "say in the proto file or in words.rs what they are: {silent:#?}");
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let ok = "syntax = \"proto3\";\npackage a.b;\n// M.\nmessage M {\n  // F.\n  repeated string f = 3; // G.\n  oneof o {\n    int64 n = 4;\n  }\n  message In {}\n}\n";
        let file = parse::parse(ok).unwrap();
        assert_eq!(file.items.len(), 2);
        assert_eq!(file.items[1].name, "M.In");
        let line = &file.items[0].lines[0];
        assert_eq!((&*line.name, line.number, &*line.of, &*line.doc), ("f", 3, "repeated string", "F. G."));
        assert_eq!(file.items[0].lines[1].oneof.as_deref(), Some("o"));
        for bad in
            ["message M {", "string f = 1;", "message M {\n  string f = x;\n}", "message M {\n  string\n}"]
        {
            assert!(parse::parse(bad).is_err(), "{bad}");
        }
    }
}
