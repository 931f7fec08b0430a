//! Reads the `.proto` files as they are written here: one item a line, comments in front of it or behind it. What does not fit is an
//! error, so that nothing is left out of the page.

use anyhow::{Context, bail};

/// What a file declares, in its order; nested types under their full names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) package: String,
    pub(crate) doc: String,
    pub(crate) items: Vec<Item>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Service,
    Message,
    Enum,
}

/// A call, a field or a value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Of a field or value.
    pub(crate) number: u32,
    /// Of a field: as written, with `optional` or `repeated`. Of a call: request and answer.
    pub(crate) of: String,
    /// The `oneof` that it belongs to.
    pub(crate) oneof: Option<String>,
    pub(crate) doc: String,
}

/// What a closing brace ends.
enum Open {
    Item(usize),
    Oneof,
}

/// Parses one file.
pub(crate) fn parse(text: &str) -> anyhow::Result<File> {
    let mut file = File::default();
    let mut open: Vec<Open> = Vec::new();
    let mut oneof: Option<String> = None;
    let mut doc: Vec<&str> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("//") {
            doc.push(comment.trim());
            continue;
        }
        let (code, behind) = line.split_once("//").map_or((line, ""), |(c, d)| (c.trim(), d.trim()));
        if !behind.is_empty() {
            doc.push(behind);
        }
        let said = doc.join(" ");
        let at = || format!("line {}: {line}", n + 1);
        if code.is_empty() {
            doc.clear();
        } else if let Some(rest) = code.strip_prefix("package ") {
            rest.trim_end_matches(';').clone_into(&mut file.package);
        } else if code.starts_with("syntax ") {
            file.doc = said;
            doc.clear();
        } else if code.starts_with("import ") || code.starts_with("option ") {
            doc.clear();
        } else if code == "}" {
            if let Some(Open::Oneof) = open.pop() {
                oneof = None;
            }
            doc.clear();
        } else if let Some(name) = code.strip_prefix("oneof ").and_then(|r| r.strip_suffix('{')) {
            oneof = Some(name.trim().to_owned());
            open.push(Open::Oneof);
            doc.clear();
        } else if let Some((kind, rest)) = head(code) {
            let (name, rest) = rest.split_once('{').with_context(at)?;
            let outer = open.iter().rev().find_map(|o| match o {
                Open::Item(i) => Some(format!("{}.", file.items[*i].name)),
                Open::Oneof => None,
            });
            let name = outer.unwrap_or_default() + name.trim();
            file.items.push(Item { kind, name, doc: said, lines: Vec::new() });
            if rest.trim() != "}" {
                open.push(Open::Item(file.items.len() - 1));
            }
            doc.clear();
        } else {
            let inside = open.iter().rev().find_map(|o| match o {
                Open::Item(i) => Some(*i),
                Open::Oneof => None,
            });
            let Some(item) = inside.and_then(|i| file.items.get_mut(i)) else {
                bail!("outside of everything: {}", at())
            };
            let entry = entry(item.kind, code).with_context(at)?;
            item.lines.push(Line { oneof: oneof.clone(), doc: said, ..entry });
            doc.clear();
        }
    }
    if !open.is_empty() {
        bail!("an item is not closed");
    }
    Ok(file)
}

fn head(code: &str) -> Option<(Kind, &str)> {
    [("service ", Kind::Service), ("message ", Kind::Message), ("enum ", Kind::Enum)]
        .into_iter()
        .find_map(|(word, kind)| code.strip_prefix(word).filter(|r| r.contains('{')).map(|r| (kind, r)))
}

fn entry(kind: Kind, code: &str) -> Option<Line> {
    let code = code.strip_suffix(';')?;
    if kind == Kind::Service {
        let (name, rest) = code.strip_prefix("rpc ")?.split_once('(')?;
        let (request, answer) = rest.split_once(") returns (")?;
        let of = format!("{request} -> {}", answer.strip_suffix(')')?);
        return Some(Line { name: name.trim().to_owned(), of, ..Line::default() });
    }
    let (left, number) = code.split_once('=')?;
    let number = number.trim().parse().ok()?;
    let left = left.trim();
    let (of, name) = if kind == Kind::Enum { ("", left) } else { left.rsplit_once(' ')? };
    Some(Line { name: name.trim().to_owned(), number, of: of.trim().to_owned(), ..Line::default() })
}
