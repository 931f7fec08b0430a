//! Whether applying a partial object would change a live one.

use serde_json::Value;
use tidemill_crd::Quantity;

/// True unless everything that is wished for is there. What the wish does not name is not compared: defaults of the API
/// server and fields of others.
#[must_use]
pub fn would_change(wish: &Value, live: &Value) -> bool {
    differs(wish, live, false)
}

fn differs(wish: &Value, live: &Value, quantity: bool) -> bool {
    match (wish, live) {
        (Value::Object(wish), Value::Object(live)) => wish.iter().any(|(key, value)| {
            let quantities = quantity || key == "requests" || key == "limits";
            match live.get(key) {
                Some(have) => differs(value, have, quantities),
                // The server leaves empty maps and lists out.
                None => !is_empty(value),
            }
        }),
        (Value::Array(wish), Value::Array(live)) => {
            wish.len() != live.len() || wish.iter().zip(live).any(|(w, l)| differs(w, l, quantity))
        }
        (Value::String(wish), Value::String(live)) if quantity => {
            // The server writes 0.5Gi as 512Mi.
            match (Quantity::new(wish).milli(), Quantity::new(live).milli()) {
                (Ok(w), Ok(l)) => w != l,
                _ => wish != live,
            }
        }
        (wish, live) => wish != live,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rule_3_defaults_and_other_peoples_fields_change_nothing() {
        let wish = json!({"spec": {"replicas": 3, "list": [{"name": "a"}], "none": {}}});
        let live = json!({"spec": {"replicas": 3, "list": [{"name": "a", "default": true}], "other": 1}, "status": {}});
        assert!(!would_change(&wish, &live));
    }

    #[test]
    fn a_changed_missing_or_surplus_value_does() {
        let live = json!({"a": 1, "list": [1, 2]});
        assert!(would_change(&json!({"a": 2}), &live));
        assert!(would_change(&json!({"b": 1}), &live));
        assert!(would_change(&json!({"list": [1]}), &live));
    }

    #[test]
    fn quantities_are_compared_by_value() {
        let live = json!({"resources": {"requests": {"memory": "512Mi", "cpu": "1"}}});
        assert!(!would_change(
            &json!({"resources": {"requests": {"memory": "0.5Gi", "cpu": "1000m"}}}),
            &live
        ));
        assert!(would_change(&json!({"resources": {"requests": {"memory": "1Gi"}}}), &live));
    }
}
