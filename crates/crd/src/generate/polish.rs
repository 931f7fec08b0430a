//! What the derive lacks: list-maps, no `nullable`, whole numbers, defaults of objects, the status of the first second.

use serde_json::{Map, Value, json};

/// What a kind needs besides the general rules. Paths go through properties and items, such as `spec.bookiePools`.
pub(super) struct Extra {
    /// Lists that are maps, with their key.
    pub(super) list_maps: &'static [(&'static str, &'static str)],
    /// Objects whose default is `{}`.
    pub(super) empty_defaults: &'static [&'static str],
}

/// Polishes a definition; the error is a path that the schema lacks.
pub(super) fn polish(crd: &mut Value, extra: &Extra) -> Result<(), String> {
    if let Some(metadata) = crd.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|k, _| k == "name");
    }
    if let Some(crd) = crd.as_object_mut() {
        crd.remove("status");
    }
    // What an API server adds by itself, so that applying and reading back gives no difference.
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
        if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
            let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            names.insert("listKind".to_owned(), json!(format!("{kind}List")));
        }
    }
    let schema = crd
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema")
        .ok_or_else(|| "spec.versions[0].schema".to_owned())?;
    walk(schema);
    for (path, key) in extra.list_maps.iter().chain(&[("status.conditions", "type")]) {
        let list = place(schema, path)?;
        list.insert("x-kubernetes-list-type".to_owned(), json!("map"));
        list.insert("x-kubernetes-list-map-keys".to_owned(), json!([key]));
    }
    for path in extra.empty_defaults {
        place(schema, path)?.insert("default".to_owned(), json!({}));
    }
    place(schema, "status")?.insert("default".to_owned(), first_second());
    Ok(())
}

/// Rule 4: what an object shows before anybody has looked at it.
fn first_second() -> Value {
    json!({
        "observedGeneration": -1,
        "conditions": [{
            "type": "Ready",
            "status": "Unknown",
            "reason": "NotReconciled",
            "message": "no operator has looked at this object yet",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }],
    })
}

fn place<'a>(schema: &'a mut Value, path: &str) -> Result<&'a mut Map<String, Value>, String> {
    let mut at = schema;
    for name in path.split('.') {
        if at.get("items").is_some() {
            at = at.get_mut("items").ok_or_else(|| path.to_owned())?;
        }
        at = at.get_mut("properties").and_then(|p| p.get_mut(name)).ok_or_else(|| path.to_owned())?;
    }
    at.as_object_mut().ok_or_else(|| path.to_owned())
}

/// Maps of texts have a limit: what a rule of CEL may cost is reckoned from it.
fn limit_map(map: &mut Map<String, Value>) {
    let texts = map.get("additionalProperties").is_some_and(|v| v.get("type") == Some(&json!("string")));
    if !texts {
        return;
    }
    map.entry("maxProperties").or_insert(json!(MAX_PAIRS));
    if let Some(value) = map.get_mut("additionalProperties").and_then(Value::as_object_mut) {
        value.entry("maxLength").or_insert(json!(MAX_TEXT));
    }
}

/// Pairs of a map.
const MAX_PAIRS: u32 = 64;
/// Length of a value of a map.
const MAX_TEXT: u32 = 1_024;

/// Everywhere: no `nullable`, no defaults that are null, `1` instead of `1.0`, integer formats that exist.
fn walk(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("nullable");
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            limit_map(map);
            // Unsigned formats do not exist there; the bounds say the rest.
            if map.get("format").and_then(Value::as_str).is_some_and(|f| f.starts_with("uint")) {
                map.insert("format".to_owned(), json!("int64"));
            }
            map.values_mut().for_each(walk);
        }
        Value::Array(list) => list.iter_mut().for_each(walk),
        Value::Number(number) => {
            #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53: checked")]
            if let Some(float) =
                number.as_f64().filter(|f| number.is_f64() && f.fract() == 0.0 && f.abs() < 9e15)
            {
                *number = (float as i64).into();
            }
        }
        _ => {}
    }
}
