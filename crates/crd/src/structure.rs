//! Whether a manifest has the form that its definition asks for: what an API server says before any rule is looked at, for
//! clusters without Kubernetes. Patterns are left to the kinds' own `validate`.

use serde_json::{Map, Value};

use crate::generate::{GenerateError, definitions};

/// A place in a manifest that is not as the definition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, such as `spec.retention.time`.
    pub field: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// Most problems that are told of one manifest.
const MAX_PROBLEMS: usize = 20;

/// The schema of a kind; `None`: no such kind.
///
/// # Errors
/// [`GenerateError`], a mistake in this crate.
pub fn schema_of(kind: &str) -> Result<Option<Value>, GenerateError> {
    let found = definitions()?.into_iter().find(|d| d.object["spec"]["names"]["kind"] == kind);
    Ok(found.map(|d| d.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()))
}

/// Everything in `manifest` that is not of the form of `schema`: unknown fields, wrong types, missing fields, values outside
/// of an enumeration or a bound. `apiVersion`, `kind`, `metadata` and `status` are not looked into.
#[must_use]
pub fn check(schema: &Value, manifest: &Value) -> Vec<Problem> {
    let mut out = Vec::new();
    for key in manifest.as_object().into_iter().flat_map(Map::keys) {
        if !["apiVersion", "kind", "metadata", "spec", "status"].contains(&key.as_str()) {
            unknown(key, &mut out);
        }
    }
    match manifest.get("spec") {
        Some(spec) => value(&schema["properties"]["spec"], spec, "spec", &mut out),
        None => problem("spec", "is missing", &mut out),
    }
    out.truncate(MAX_PROBLEMS);
    out
}

fn problem(field: &str, message: impl Into<String>, out: &mut Vec<Problem>) {
    out.push(Problem { field: field.to_owned(), message: message.into() });
}

fn unknown(field: &str, out: &mut Vec<Problem>) {
    problem(field, "is not known", out);
}

fn type_of(v: &Value) -> &'static str {
    match v {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() || n.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn value(schema: &Value, v: &Value, at: &str, out: &mut Vec<Problem>) {
    if out.len() >= MAX_PROBLEMS {
        return;
    }
    if let Some(wanted) = schema.get("type").and_then(Value::as_str) {
        let found = type_of(v);
        if found != wanted && !(wanted == "number" && found == "integer") {
            return problem(at, format!("is {found}, {wanted} is needed"), out);
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(v)
    {
        let allowed: Vec<String> = allowed.iter().map(plain).collect();
        return problem(at, format!("is {}, allowed: {}", plain(v), allowed.join(", ")), out);
    }
    match v {
        Value::Object(map) => object(schema, map, at, out),
        Value::Array(list) => {
            bounds(schema, ["minItems", "maxItems"], list.len() as f64, "elements", at, out);
            for (i, item) in list.iter().enumerate() {
                value(&schema["items"], item, &format!("{at}[{i}]"), out);
            }
        }
        Value::String(s) => {
            bounds(schema, ["minLength", "maxLength"], s.chars().count() as f64, "characters", at, out);
        }
        Value::Number(n) => bounds(schema, ["minimum", "maximum"], n.as_f64().unwrap_or(0.0), "", at, out),
        Value::Null | Value::Bool(_) => {}
    }
}

fn object(schema: &Value, map: &Map<String, Value>, at: &str, out: &mut Vec<Problem>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    bounds(schema, ["minProperties", "maxProperties"], map.len() as f64, "pairs", at, out);
    for (key, v) in map {
        let field = format!("{at}.{key}");
        match (properties.and_then(|p| p.get(key)), others) {
            (Some(s), _) => value(s, v, &field, out),
            (None, Some(s)) if s.is_object() => value(s, v, &field, out),
            (None, Some(Value::Bool(true))) => {}
            _ => unknown(&field, out),
        }
    }
    for key in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if let Some(key) = key.as_str().filter(|k| !map.contains_key(*k)) {
            problem(&format!("{at}.{key}"), "is missing", out);
        }
    }
}

fn bounds(schema: &Value, names: [&str; 2], n: f64, what: &str, at: &str, out: &mut Vec<Problem>) {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (min, max) = (bound(names[0]), bound(names[1]));
    if min.is_some_and(|m| n < m) || max.is_some_and(|m| n > m) {
        let text = |b: Option<f64>, none: &str| b.map_or_else(|| none.to_owned(), |b| b.to_string());
        let unit = if what.is_empty() { String::new() } else { format!(" {what}") };
        let why = format!("has {n}{unit}, allowed: {} to {}", text(min, "any"), text(max, "any"));
        problem(at, why, out);
    }
}

fn plain(v: &Value) -> String {
    v.as_str().map_or_else(|| v.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(spec: &Value) -> Vec<String> {
        let schema = schema_of("Topic").unwrap().unwrap();
        let manifest = json!({"apiVersion": "tidemill.dev/v1alpha1", "kind": "Topic", "metadata": {"name": "t"}, "spec": spec});
        check(&schema, &manifest).into_iter().map(|p| format!("{} {}", p.field, p.message)).collect()
    }

    #[test]
    fn every_place_is_named() {
        let good = json!({"clusterRef": {"name": "c"}, "partitions": 3, "config": {"roll.bytes": "1048576"}});
        assert_eq!(problems(&good), Vec::<String>::new());
        assert_eq!(problems(&json!({"partitions": 1})), ["spec.clusterRef is missing"]);
        let wrong = json!({
            "clusterRef": {"name": "c", "colour": 1},
            "partitions": "3",
            "cleanupPolicy": "Burn",
            "retention": {"time": 7},
            "config": {"a": 1},
            "copies": 3,
        });
        let mut found = problems(&wrong);
        found.sort();
        assert_eq!(
            found,
            [
                "spec.cleanupPolicy is Burn, allowed: Delete, Compact, CompactAndDelete",
                "spec.clusterRef.colour is not known",
                "spec.config.a is integer, string is needed",
                "spec.copies is not known",
                "spec.partitions is string, integer is needed",
                "spec.retention.time is integer, string is needed",
            ]
        );
        assert_eq!(
            problems(&json!({"clusterRef": {"name": ""}, "partitions": 1}))[0],
            "spec.clusterRef.name has 0 characters, allowed: 1 to 24"
        );
        assert_eq!(check(&schema_of("Topic").unwrap().unwrap(), &json!({"spce": {}})).len(), 2);
        assert!(schema_of("Pod").unwrap().is_none());
    }
}
