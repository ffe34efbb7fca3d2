//! Generates JSON values for simple JSON schemas, for structured output and tool arguments.

use serde_json::{Map, Value, json};

/// A small value that satisfies the schema. `text` is the value of unconstrained strings.
pub(crate) fn satisfy(schema: &Value, text: &str) -> Value {
    satisfy_within(schema, schema, text, 0)
}

/// A schema may refer to itself; no test needs more than ten levels.
const MAX_DEPTH: usize = 10;

fn satisfy_within(root: &Value, schema: &Value, text: &str, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or(Value::Null, |target| satisfy_within(root, target, text, depth + 1));
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = schema[choice].get(0) {
            return satisfy_within(root, first, text, depth + 1);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("string") => text.into(),
        Some("integer") => schema["minimum"].as_i64().unwrap_or(7).into(),
        Some("number") => json!(schema["minimum"].as_f64().unwrap_or(2.5)),
        Some("boolean") => true.into(),
        Some("array") => {
            let length = schema["minItems"].as_u64().unwrap_or(2).max(1);
            (0..length).map(|_| satisfy_within(root, &schema["items"], text, depth + 1)).collect()
        }
        Some("null") => Value::Null,
        // A schema without a type is treated as an object, and without properties as an empty one.
        Some(_) | None => {
            let mut object = Map::new();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                object.insert(name.clone(), satisfy_within(root, property, text, depth + 1));
            }
            object.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        assert_eq!(satisfy(&schema, "hello"), expected);
    }

    #[test]
    fn an_object_gets_all_its_properties() {
        let properties = json!({
            "name": {"type": "string"}, "age": {"type": "integer"}, "score": {"type": "number"},
            "ok": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
        });
        check(
            json!({"type": "object", "properties": properties}),
            json!({"name": "hello", "age": 7, "score": 2.5, "ok": true, "tags": ["hello", "hello"]}),
        );
    }

    #[test]
    fn references_and_choices_are_followed() {
        check(
            json!({
                "$defs": {"Unit": {"type": "string", "enum": ["c", "f"]}},
                "type": "object",
                "properties": {
                    "unit": {"$ref": "#/$defs/Unit"},
                    "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                },
            }),
            json!({"unit": "c", "maybe": 7}),
        );
    }

    #[test]
    fn a_recursive_schema_terminates() {
        let tree = json!({"properties": {"next": {"$ref": "#"}}});
        assert!(satisfy(&tree, "x").is_object());
    }
}
