//! JSON merge patches, for tables of small differences from a good manifest.

use serde_json::Value;

/// `base` with `change` merged in; null takes a field away.
pub(crate) fn merged(base: &Value, change: &Value) -> Value {
    let (Value::Object(base), Value::Object(change)) = (base, change) else { return change.clone() };
    let mut merged = base.clone();
    for (key, value) in change {
        if value.is_null() {
            merged.remove(key);
        } else {
            let below = merged.get(key).cloned().unwrap_or(Value::Null);
            let below = if below.is_object() { below } else { Value::Object(serde_json::Map::new()) };
            let value = if value.is_object() { self::merged(&below, value) } else { value.clone() };
            merged.insert(key.clone(), value);
        }
    }
    Value::Object(merged)
}

#[test]
fn fields_are_set_added_and_taken_away() {
    let base = serde_json::json!({ "a": { "b": 1, "c": 2 }, "d": 3 });
    let change = serde_json::json!({ "a": { "b": null, "e": { "f": 4 } }, "d": [1] });
    assert_eq!(merged(&base, &change), serde_json::json!({ "a": { "c": 2, "e": { "f": 4 } }, "d": [1] }));
}
