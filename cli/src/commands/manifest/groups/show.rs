//! Groups of a cluster as objects.

use serde_json::{Map, Value, json};
use tidemill_client::v1;
use tidemill_crd::plan::{GroupWish, shown_assignor, shown_start};
use tidemill_types::Assignor;

use super::{Kind, Shown, joined};
use crate::commands::table::{self, Row};

/// Namespace and name of the object that claims a group: `ConsumerGroup NAMESPACE/NAME`; without a claim the group's own name.
pub(super) fn object_of(claim: Option<&v1::GroupClaim>, group: &str) -> (Option<String>, String) {
    let named = claim.and_then(|c| c.owner.strip_prefix("ConsumerGroup ")).and_then(|n| n.split_once('/'));
    match named {
        Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
        None => (None, group.to_owned()),
    }
}

/// Whether a person means this group: by its object, or by its own name.
pub(super) fn is_named(claim: Option<&v1::GroupClaim>, group: &str, namespace: &str, name: &str) -> bool {
    let (of, object) = object_of(claim, group);
    group == name || (object == name && of.as_deref().is_none_or(|n| n == namespace))
}

fn claim(s: &Shown) -> Option<&v1::GroupClaim> {
    s.described.declaration.as_ref().and_then(|d| d.claim.as_ref())
}

fn name(s: &Shown) -> &str {
    s.described.summary.as_ref().map_or("", |s| s.name.as_str())
}

/// One word for the state of a group as an object.
fn ready(s: &Shown) -> (&'static str, &'static str) {
    match (&s.seen.claim, &s.seen.config) {
        (Some(_), Some(_)) => ("True", "Ready"),
        (Some(_), None) => ("False", "Configuring"),
        (None, _) => ("-", "NotDeclared"),
    }
}

fn lag(s: &Shown) -> String {
    s.seen.lag.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
}

pub(super) fn row(s: &Shown) -> Row {
    let (ready, reason) = ready(s);
    let object = object_of(claim(s), name(s)).1;
    let config = s.seen.config.as_ref();
    Row {
        name: format!("{}/{object}", Kind::ConsumerGroup.full()),
        columns: vec![
            object,
            ready.to_owned(),
            reason.to_owned(),
            s.seen.state.clone(),
            s.seen.members.to_string(),
            lag(s),
        ],
        wide: vec![
            name(s).to_owned(),
            claim(s).map_or_else(|| "-".to_owned(), |c| c.owner.clone()),
            config.map_or_else(|| "-".to_owned(), |c| shown_assignor(c.assignor)),
            config.map_or_else(|| "-".to_owned(), |c| joined(&c.topics)),
        ],
        json: manifest(s),
    }
}

/// The object as a manifest with its status.
fn manifest(s: &Shown) -> Value {
    let (namespace, object) = object_of(claim(s), name(s));
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(object));
    if let Some(namespace) = namespace {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    let mut spec = s.seen.config.as_ref().map(spec).unwrap_or_default();
    if object != name(s) {
        spec.insert("groupName".to_owned(), json!(name(s)));
    }
    let (status, reason) = ready(s);
    let members: Vec<Value> = s
        .seen
        .assignments
        .iter()
        .map(|(m, parts)| {
            let parts: Vec<String> = parts.iter().map(|(t, p)| format!("{t}/{p}")).collect();
            json!({"member": m, "partitions": parts})
        })
        .collect();
    let last = s.seen.resets.last().map(|(id, to)| json!({"id": id, "to": to}));
    json!({
        "apiVersion": format!("{}/{}", tidemill_crd::GROUP, tidemill_crd::VERSION),
        "kind": Kind::ConsumerGroup.name(),
        "metadata": metadata,
        "spec": spec,
        "status": {
            "groupName": name(s),
            "state": s.seen.state,
            "members": s.seen.members,
            "assignments": members,
            "lag": s.seen.lag,
            "lastReset": last,
            "claimedBy": claim(s).map(|c| c.owner.clone()),
            "conditions": [{"type": "Ready", "status": status, "reason": reason}],
        },
    })
}

fn spec(c: &GroupWish) -> Map<String, Value> {
    let mut spec = Map::new();
    spec.insert("topics".to_owned(), json!(c.topics));
    let assignment = if c.assignor == Assignor::Static {
        let of = |(member, parts): (&String, &std::collections::BTreeSet<(String, u32)>)| {
            let parts: Vec<String> = parts.iter().map(|(t, p)| format!("{t}/{p}")).collect();
            (member.clone(), json!(parts))
        };
        json!({"static": c.fixed.iter().map(of).collect::<Map<_, _>>()})
    } else {
        json!({"strategy": shown_assignor(c.assignor)})
    };
    spec.insert("assignment".to_owned(), assignment);
    if c.start_at.is_some() {
        spec.insert("startAt".to_owned(), json!(shown_start(c.start_at)));
    }
    spec
}

/// Everything, for people.
pub(super) fn text(s: &Shown) -> String {
    let (namespace, object) = object_of(claim(s), name(s));
    let (ready, reason) = ready(s);
    let mut lines = vec![
        ("Name", object),
        ("Namespace", namespace.unwrap_or_else(|| "-".to_owned())),
        ("Group", name(s).to_owned()),
        (
            "Claimed by",
            claim(s).map_or_else(|| "nobody".to_owned(), |c| format!("{} (uid {})", c.owner, c.uid)),
        ),
        ("Ready", format!("{ready} ({reason})")),
        ("State", s.seen.state.clone()),
        ("Lag", lag(s)),
    ];
    if let Some(c) = &s.seen.config {
        lines.push(("Topics", joined(&c.topics)));
        lines.push(("Assignment", shown_assignor(c.assignor)));
        if c.start_at.is_some() {
            lines.push(("Start at", shown_start(c.start_at)));
        }
    }
    for r in s.described.declaration.iter().flat_map(|d| &d.resets) {
        lines.push((
            "Reset",
            format!("{} to {} at {}", r.id, r.to, crate::commands::manifest::show::time(r.at_ms)),
        ));
    }
    let mut out: String = lines.into_iter().map(|(k, v)| format!("{:<12}{v}\n", format!("{k}:"))).collect();
    let parts = |all: &std::collections::BTreeSet<(String, u32)>| {
        let all: Vec<String> = all.iter().map(|(t, p)| format!("{t}/{p}")).collect();
        all.join(" ")
    };
    if !s.seen.assignments.is_empty() {
        out.push('\n');
        let rows = s.seen.assignments.iter().map(|(m, p)| vec![m.clone(), parts(p)]).collect();
        out.push_str(&table::columns(&["MEMBER", "PARTITIONS"], rows));
    }
    if !s.described.offsets.is_empty() {
        let known = |n: i64| if n < 0 { "-".to_owned() } else { n.to_string() };
        out.push('\n');
        let rows = s
            .described
            .offsets
            .iter()
            .map(|o| {
                let place = format!("{}/{}", o.topic, o.partition);
                vec![place, known(o.committed), known(o.log_end), known(o.lag)]
            })
            .collect();
        out.push_str(&table::columns(&["PARTITION", "COMMITTED", "END", "LAG"], rows));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_by_both_names() {
        let claim = v1::GroupClaim { uid: "u".into(), owner: "ConsumerGroup team/a".into() };
        let is = |namespace, name| is_named(Some(&claim), "billing", namespace, name);
        assert!(is("team", "a") && is("x", "billing") && !is("x", "a"));
        assert!(is_named(None, "billing", "any", "billing"));
    }
}
