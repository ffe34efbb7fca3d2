use std::collections::HashSet;

use serde_json::{Map, Value};
use tidegate_engine::Tokens;

use crate::{Encoding, count};

/// Counts the tokens of a request's `tools` (or the older `functions`), given as the JSON of the array.
///
/// OpenAI renders function definitions as a TypeScript namespace, and this counts the same text. Where the rendering is not known, it
/// assumes that descriptions appear at every depth, that named definitions (`$defs`) appear once before their function, and that other
/// tools appear as JSON. Invalid JSON counts as plain text.
#[must_use]
pub fn tools_tokens(encoding: Encoding, tools: &str) -> Tokens {
    match serde_json::from_str::<Vec<Value>>(tools) {
        Ok(tools) if tools.is_empty() => Tokens::ZERO,
        Ok(tools) => count(encoding, &render(&tools)) + FRAME,
        Err(_) => count(encoding, tools),
    }
}

/// The tokens around the namespace in the message that contains it.
const FRAME: Tokens = Tokens(9);

fn render(tools: &[Value]) -> String {
    let mut out = String::from("namespace functions {\n\n");
    for tool in tools {
        // The older `functions` array has the definitions without a wrapper.
        let definition = tool.get("function").unwrap_or(tool);
        match definition.get("name").and_then(Value::as_str) {
            Some(name) => function(&mut out, name, definition),
            None => out.push_str(&tool.to_string()),
        }
        out.push_str("\n\n");
    }
    out.push_str("} // namespace functions");
    out
}

fn function(out: &mut String, name: &str, definition: &Value) {
    // Anthropic's name for the same.
    let schema = definition.get("parameters").or_else(|| definition.get("input_schema"));
    let parameters = schema.and_then(Value::as_object);
    for section in ["$defs", "definitions"] {
        let named = parameters.and_then(|parameters| parameters.get(section)).and_then(Value::as_object);
        for (name, schema) in named.into_iter().flatten() {
            comment(out, schema, 0);
            out.push_str("type ");
            out.push_str(name);
            out.push_str(" = ");
            type_of(out, schema, 0);
            out.push_str(";\n\n");
        }
    }
    comment(out, definition, 0);
    out.push_str("type ");
    out.push_str(name);
    match parameters.and_then(properties) {
        Some((properties, required)) => {
            out.push_str(" = (_: {\n");
            members(out, properties, &required, 0);
            out.push_str("}) => any;");
        }
        None => out.push_str(" = () => any;"),
    }
}

/// Returns an object's properties and the names of the required ones, or `None` if it has no properties.
fn properties(schema: &Map<String, Value>) -> Option<(&Map<String, Value>, HashSet<&str>)> {
    let properties = schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
    let required = schema.get("required").and_then(Value::as_array);
    Some((properties, required.into_iter().flatten().filter_map(Value::as_str).collect()))
}

fn members(out: &mut String, properties: &Map<String, Value>, required: &HashSet<&str>, depth: usize) {
    for (name, schema) in properties {
        comment(out, schema, depth);
        indent(out, depth);
        out.push_str(name);
        out.push_str(if required.contains(name.as_str()) { ": " } else { "?: " });
        type_of(out, schema, depth);
        out.push(',');
        if let Some(default) = schema.get("default") {
            out.push_str(" // default: ");
            out.push_str(&default.to_string());
        }
        out.push('\n');
    }
}

fn type_of(out: &mut String, schema: &Value, depth: usize) {
    let Some(schema) = schema.as_object() else { return out.push_str("any") };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return joined(out, values, " | ", |out, value| out.push_str(&value.to_string()));
    }
    if let Some(value) = schema.get("const") {
        return out.push_str(&value.to_string());
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return out.push_str(reference.rsplit('/').next().unwrap_or(reference));
    }
    for (keyword, separator) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
        if let Some(schemas) = schema.get(keyword).and_then(Value::as_array) {
            return joined(out, schemas, separator, |out, schema| type_of(out, schema, depth));
        }
    }
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            // Rendering a repeated type twice at every level would take exponential time.
            let mut seen = HashSet::new();
            let kinds: Vec<&str> =
                kinds.iter().filter_map(Value::as_str).filter(|kind| seen.insert(*kind)).collect();
            joined(out, &kinds, " | ", |out, kind| kind_of(out, kind, schema, depth));
        }
        Some(Value::String(kind)) => kind_of(out, kind, schema, depth),
        _ if schema.contains_key("properties") => kind_of(out, "object", schema, depth),
        _ => out.push_str("any"),
    }
}

fn kind_of(out: &mut String, kind: &str, schema: &Map<String, Value>, depth: usize) {
    match kind {
        "integer" | "number" => out.push_str("number"),
        "array" => {
            match schema.get("items") {
                Some(items) => type_of(out, items, depth),
                None => out.push_str("any"),
            }
            out.push_str("[]");
        }
        "object" => match properties(schema) {
            Some((properties, required)) => {
                out.push_str("{\n");
                members(out, properties, &required, depth + 1);
                indent(out, depth);
                out.push('}');
            }
            None => out.push_str("object"),
        },
        other => out.push_str(other),
    }
}

fn comment(out: &mut String, schema: &Value, depth: usize) {
    let Some(description) = schema.get("description").and_then(Value::as_str) else { return };
    for line in description.lines() {
        indent(out, depth);
        out.push_str("// ");
        out.push_str(line);
        out.push('\n');
    }
}

/// Indents up to eight levels. A run of spaces is one token however long it is, and indentation must not make the text much longer
/// than the request.
fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth.min(8)));
}

fn joined<T>(out: &mut String, values: &[T], separator: &str, write: impl Fn(&mut String, &T)) {
    for (position, value) in values.iter().enumerate() {
        if position > 0 {
            out.push_str(separator);
        }
        write(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tools: &str, body: &str) {
        let tools: Vec<Value> = serde_json::from_str(tools).unwrap();
        assert_eq!(render(&tools), format!("namespace functions {{\n\n{body}\n\n}} // namespace functions"));
    }

    #[test]
    fn functions_render_as_types() {
        check(
            r#"[{"type":"function","function":{"name":"get_weather","description":"Get the weather.\nBy city.",
                "parameters":{"type":"object","required":["city"],"properties":{
                    "city":{"type":"string","description":"Where"},
                    "days":{"type":"integer","default":3},
                    "unit":{"enum":["C","F"]}}}}}]"#,
            "// Get the weather.\n// By city.\ntype get_weather = (_: {\n// Where\ncity: string,\n\
             days?: number, // default: 3\nunit?: \"C\" | \"F\",\n}) => any;",
        );
        check(r#"[{"name":"now"}]"#, "type now = () => any;");
        check(r#"[{"type":"web_search"}]"#, r#"{"type":"web_search"}"#);
    }

    #[test]
    fn nested_schemas_render_as_nested_types() {
        check(
            r##"[{"name":"f","parameters":{"type":"object","$defs":{"P":{"type":"object","properties":{"x":{"type":"number"}}}},
                "properties":{
                    "a":{"type":"array","items":{"$ref":"#/$defs/P"}},
                    "b":{"type":"object","properties":{"c":{"type":["string","null"],"description":"D"}}},
                    "d":{"anyOf":[{"type":"boolean"},{"const":1}]},
                    "e":true}}}]"##,
            "type P = {\n  x?: number,\n};\n\ntype f = (_: {\na?: P[],\n\
             b?: {\n  // D\n  c?: string | null,\n},\nd?: boolean | 1,\ne?: any,\n}) => any;",
        );
    }

    #[test]
    fn tools_tokens_adds_the_frame_and_accepts_any_text() {
        let o200k = Encoding::O200k;
        let text = "namespace functions {\n\ntype now = () => any;\n\n} // namespace functions";
        assert_eq!(tools_tokens(o200k, r#"[{"name":"now"}]"#), count(o200k, text) + Tokens(9));
        assert_eq!(tools_tokens(o200k, "[]"), Tokens::ZERO);
        for odd in ["", "{", "[[]]", "[1,null]", r#"[{"name":"f","parameters":[]}]"#, "{\"a\":1}"] {
            let _total: Tokens = tools_tokens(o200k, odd);
        }
        assert_eq!(tools_tokens(o200k, "[1"), count(o200k, "[1"));
    }

    #[test]
    fn the_rendering_is_never_much_longer_than_the_schema() {
        let nested = format!(
            "{}{}",
            r#"{"type":"object","properties":{"p":"#.repeat(60),
            "true".to_owned() + &"}}".repeat(60)
        );
        let tools: Vec<Value> =
            serde_json::from_str(&format!(r#"[{{"name":"f","parameters":{nested}}}]"#)).unwrap();
        assert!(render(&tools).len() < 2 * nested.len());
        let repeated = nested.replace(r#""object""#, r#"["object","object"]"#);
        let tools: Vec<Value> =
            serde_json::from_str(&format!(r#"[{{"name":"f","parameters":{repeated}}}]"#)).unwrap();
        assert!(render(&tools).len() < 2 * repeated.len());
        let unreadable = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(tools_tokens(Encoding::O200k, &unreadable) > Tokens(100));
    }
}
