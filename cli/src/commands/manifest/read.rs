//! From files to checked manifests. Every problem is told with file, document and field; with one of them nothing is done.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tidemill_crd::{
    Cluster, ConsumerGroup, GROUP, Topic, VERSION, group, plan, structure,
    topic::{self, Violation},
};
use tidemill_types::ErrorCode;

use super::Kind;
use crate::error::{CliError, Exit};

/// Largest file, bytes.
const MAX_FILE: u64 = 16 << 20;
/// Files of one run.
const MAX_FILES: usize = 10_000;
/// Documents of one run.
const MAX_DOCUMENTS: usize = 100_000;
/// Problems that are told.
const MAX_PROBLEMS: usize = 50;

/// A checked manifest.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// File and document, for messages.
    pub(crate) at: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) object: Object,
}

/// Its content.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Cluster(Box<Cluster>, Value),
    Topic(Box<Topic>),
    Group(Box<ConsumerGroup>),
}

impl Manifest {
    pub(crate) fn kind(&self) -> Kind {
        match self.object {
            Object::Cluster(..) => Kind::Cluster,
            Object::Topic(_) => Kind::Topic,
            Object::Group(_) => Kind::ConsumerGroup,
        }
    }

    /// `topic.tidemill.dev/orders`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.kind().full(), self.name)
    }

    /// Under which it claims.
    pub(crate) fn uid(&self) -> String {
        plan::manifest_uid(&self.namespace, &self.name)
    }

    /// For people.
    pub(crate) fn owner(&self) -> String {
        plan::owner(self.kind().name(), &self.namespace, &self.name)
    }
}

/// Reads and checks everything.
pub(crate) fn all(files: &[PathBuf], namespace: &str) -> Result<Vec<Manifest>, CliError> {
    let mut problems = Vec::new();
    let mut out: Vec<Manifest> = Vec::new();
    for path in paths(files)? {
        let (name, text) = content(&path)?;
        documents(&name, &text, namespace, &mut out, &mut problems);
        if out.len() > MAX_DOCUMENTS {
            return Err(CliError::usage("manifests", format!("more than {MAX_DOCUMENTS} documents")));
        }
    }
    twice(&out, &mut problems);
    if !problems.is_empty() {
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        if more > 0 {
            problems.push(format!("and {more} more"));
        }
        let why =
            if problems.len() == 1 { problems.remove(0) } else { format!("\n  {}", problems.join("\n  ")) };
        return Err(CliError::new("manifests", why, ErrorCode::InvalidArgument)
            .exit(Exit::Usage)
            .help("nothing was applied; mend the manifests and try again"));
    }
    if out.is_empty() {
        return Err(CliError::usage("manifests", "there is no document in them"));
    }
    Ok(out)
}

/// Files as given; those of a folder in order of name, not of its subfolders.
fn paths(files: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut out = Vec::new();
    for file in files {
        if file.is_dir() {
            let fail = |e: std::io::Error| CliError::usage(file.display().to_string(), e.to_string());
            let mut found = Vec::new();
            for entry in fs::read_dir(file).map_err(fail)? {
                let path = entry.map_err(fail)?.path();
                let known = path
                    .extension()
                    .and_then(|e| e.to_str())
                    .is_some_and(|e| ["yaml", "yml", "json"].contains(&e));
                if known && path.is_file() {
                    found.push(path);
                }
            }
            found.sort();
            out.extend(found);
        } else {
            out.push(file.clone());
        }
    }
    if out.len() > MAX_FILES {
        return Err(CliError::usage("manifests", format!("{} files, at most {MAX_FILES}", out.len())));
    }
    Ok(out)
}

fn content(path: &Path) -> Result<(String, String), CliError> {
    let (name, from): (String, Box<dyn Read>) = if path == Path::new("-") {
        ("standard input".to_owned(), Box::new(std::io::stdin()))
    } else {
        let name = path.display().to_string();
        let file = fs::File::open(path).map_err(|e| {
            let exit = if e.kind() == std::io::ErrorKind::NotFound { Exit::NotFound } else { Exit::Usage };
            CliError::usage(name.clone(), e.to_string()).exit(exit)
        })?;
        (name, Box::new(file))
    };
    let mut text = String::new();
    let read = from.take(MAX_FILE + 1).read_to_string(&mut text);
    read.map_err(|e| CliError::usage(name.clone(), e.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(CliError::usage(name, format!("more than {MAX_FILE} bytes")));
    }
    Ok((name, text))
}

/// Reads each document of a file; one that is not YAML ends the file.
fn documents(file: &str, text: &str, namespace: &str, out: &mut Vec<Manifest>, problems: &mut Vec<String>) {
    let mut reader = text.as_bytes();
    for (i, document) in serde_saphyr::read::<_, Value>(&mut reader).enumerate() {
        let at = format!("{file} document {}", i + 1);
        match document {
            Err(e) => {
                problems.push(format!("{at}: {}", first_line(&e.to_string())));
                return;
            }
            Ok(Value::Null) => {}
            // What `kubectl get -o yaml` prints for several objects.
            Ok(Value::Object(map)) if map.get("kind").is_some_and(|k| k == "List") => {
                let items = map.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
                for (n, item) in items.into_iter().enumerate() {
                    one(&format!("{at} item {}", n + 1), item, namespace, out, problems);
                }
            }
            Ok(value) => one(&at, value, namespace, out, problems),
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

fn one(at: &str, value: Value, namespace: &str, out: &mut Vec<Manifest>, problems: &mut Vec<String>) {
    match check(at.to_owned(), value, namespace) {
        Ok(m) => out.push(m),
        Err(found) => problems.extend(found.into_iter().map(|p| format!("{at}: {p}"))),
    }
}

fn check(at: String, value: Value, namespace: &str) -> Result<Manifest, Vec<String>> {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let version = format!("{GROUP}/{VERSION}");
    let mut wrong = Vec::new();
    if text("/apiVersion").as_deref() != Some(&version) {
        wrong.push(format!("apiVersion: {version} is needed"));
    }
    let kind_name = text("/kind").unwrap_or_default();
    let kind = Kind::of(&kind_name);
    if kind.is_none() {
        wrong.push(format!("kind: {kind_name:?} is given, allowed are Cluster, Topic, ConsumerGroup"));
    }
    let name = text("/metadata/name").unwrap_or_default();
    if !is_object_name(&name) {
        wrong.push("metadata.name: 1 to 253 lower-case letters, digits, '-' and '.', needed".to_owned());
    }
    let namespace = text("/metadata/namespace").unwrap_or_else(|| namespace.to_owned());
    let Some(kind) = kind.filter(|_| wrong.is_empty()) else { return Err(wrong) };
    let schema = structure::schema_of(&kind_name).map_err(|e| vec![e.to_string()])?.unwrap_or_default();
    wrong
        .extend(structure::check(&schema, &value).into_iter().map(|p| format!("{}: {}", p.field, p.message)));
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let violations = |v: Vec<Violation>| -> Result<(), Vec<String>> {
        let all: Vec<String> = v.into_iter().map(|v| format!("{}: {}", v.field, v.message)).collect();
        if all.is_empty() { Ok(()) } else { Err(all) }
    };
    let mut value = value;
    // What was written by a server is nobody's wish.
    if let Some(map) = value.as_object_mut() {
        map.remove("status");
    }
    let malformed = |e: serde_json::Error| vec![e.to_string()];
    let object = match kind {
        Kind::Cluster => {
            let raw = value.clone();
            Object::Cluster(Box::new(serde_json::from_value(value).map_err(malformed)?), raw)
        }
        Kind::Topic => {
            let topic: Topic = serde_json::from_value(value).map_err(malformed)?;
            violations(topic::validate(&topic, None))?;
            Object::Topic(Box::new(topic))
        }
        Kind::ConsumerGroup => {
            let group: ConsumerGroup = serde_json::from_value(value).map_err(malformed)?;
            violations(group::validate(&group, None))?;
            Object::Group(Box::new(group))
        }
    };
    Ok(Manifest { at, name, namespace, object })
}

fn is_object_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=253).contains(&name.len())
        && name.chars().all(|c| inner(c) || c == '-' || c == '.')
        && name.starts_with(inner)
        && name.ends_with(inner)
}

/// Two manifests of one object, two Topics for one topic or two ConsumerGroups for one group: the second would undo the first.
fn twice(all: &[Manifest], problems: &mut Vec<String>) {
    let mut objects: BTreeMap<(Kind, &str, &str), &str> = BTreeMap::new();
    let mut topics: BTreeMap<&str, &Manifest> = BTreeMap::new();
    let mut groups: BTreeMap<&str, &Manifest> = BTreeMap::new();
    for m in all {
        if let Some(first) = objects.insert((m.kind(), &m.namespace, &m.name), &m.at) {
            problems.push(format!("{}: {} stands already in {first}", m.at, m.full_name()));
        } else if let Object::Topic(t) = &m.object
            && let Some(first) = topics.insert(t.topic_name(), m)
        {
            let name = t.topic_name();
            problems.push(format!(
                "{}: spec.topicName: topic {name} is already that of {} in {}",
                m.at,
                first.full_name(),
                first.at
            ));
        } else if let Object::Group(g) = &m.object
            && let Some(first) = groups.insert(g.group_name(), m)
        {
            let name = g.group_name();
            problems.push(format!(
                "{}: spec.groupName: group {name} is already that of {} in {}",
                m.at,
                first.full_name(),
                first.at
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Manifest>, Vec<String>> {
        let (mut out, mut problems) = (Vec::new(), Vec::new());
        documents("f.yaml", text, "default", &mut out, &mut problems);
        twice(&out, &mut problems);
        if problems.is_empty() { Ok(out) } else { Err(problems) }
    }

    fn topic(name: &str, more: &str) -> String {
        format!(
            "apiVersion: tidemill.dev/v1alpha1\nkind: Topic\nmetadata: {{name: {name}}}\nspec:\n  clusterRef: {{name: c}}\n  partitions: 3\n{more}"
        )
    }

    #[test]
    fn documents_of_one_file() {
        let text = format!("{}---\n---\n{}", topic("a", ""), topic("b", "  retention: {time: Unlimited}\n"));
        let all = read(&text).unwrap();
        assert_eq!(
            all.iter().map(Manifest::full_name).collect::<Vec<_>>(),
            ["topic.tidemill.dev/a", "topic.tidemill.dev/b"]
        );
        assert_eq!(
            (all[0].uid().as_str(), all[0].owner().as_str()),
            ("manifest:default/a", "Topic default/a")
        );
        assert_eq!(all[1].at, "f.yaml document 2", "empty ones are not counted");
    }

    #[test]
    fn problems_name_file_document_and_field() {
        for (text, want) in [
            (topic("a", "  colour: red\n"), "f.yaml document 1: spec.colour: is not known"),
            (
                topic("a", "  replication: {copies: 1, ackQuorum: 2}\n"),
                "f.yaml document 1: spec.replication: ackQuorum is at most copies",
            ),
            (
                topic("A", ""),
                "f.yaml document 1: metadata.name: 1 to 253 lower-case letters, digits, '-' and '.', needed",
            ),
            (
                topic("a", "").replace("Topic", "Pod"),
                "f.yaml document 1: kind: \"Pod\" is given, allowed are Cluster, Topic, ConsumerGroup",
            ),
            (
                topic("a", "").replace("v1alpha1", "v9"),
                "f.yaml document 1: apiVersion: tidemill.dev/v1alpha1 is needed",
            ),
            (
                format!("{}---\n{}", topic("a", ""), topic("a", "")),
                "f.yaml document 2: topic.tidemill.dev/a stands already in f.yaml document 1",
            ),
            (
                format!("{}---\n{}", topic("a", ""), topic("b", "  topicName: a\n")),
                "f.yaml document 2: spec.topicName: topic a is already that of topic.tidemill.dev/a in f.yaml document 1",
            ),
        ] {
            assert_eq!(read(&text).unwrap_err(), [want], "{text}");
        }
        assert!(read("a: [").unwrap_err()[0].starts_with("f.yaml document 1: "));
    }
}
