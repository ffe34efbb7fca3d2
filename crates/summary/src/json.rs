//! Finds the JSON object in a model's answer.

use serde_json::{Map, Value};

use crate::whole_sentences::whole_sentences;

/// The maximum number of opening braces to try. Braces before the object are rare, and a text full of braces must not take more
/// than a few passes.
const TRIES: usize = 8;
const MAX_DEPTH: usize = 32;

/// Returns the first object that satisfies `wanted`. It can be bare, in a code fence or inside prose, have trailing commas, or be cut
/// off at the end.
pub(crate) fn find_object(
    text: &str,
    wanted: impl Fn(&Map<String, Value>) -> bool,
) -> Option<Map<String, Value>> {
    let mut from = 0;
    let mut second_best = None;
    let mut place = Place::Outermost;
    for _ in 0..TRIES {
        let Some(open) = text[from..].find('{').map(|at| from + at) else {
            break;
        };
        let (json, end) = tidied(&text[open..], place);
        match serde_json::from_str::<Value>(&json) {
            Ok(Value::Object(object)) if wanted(&object) => return Some(object),
            Ok(Value::Object(object)) => {
                second_best.get_or_insert(object);
                from = open + end;
            }
            Ok(_) | Err(_) => {
                from = open + 1;
                if open + end == text.len() {
                    place = Place::Inside;
                }
            }
        }
    }
    second_best
}

/// Where an object is in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outermost,
    Inside,
}

/// Repairs the value at the start of a text: removes trailing commas and closes its brackets. Returns it with the offset of its end.
///
/// A model that reaches its token limit stops in the middle of a string. Everything that was complete before that is kept: of a string
/// member of the object itself (the prose), the complete sentences. An incomplete list entry or nested object is dropped.
fn tidied(text: &str, place: Place) -> (String, usize) {
    let mut json = String::with_capacity(text.len());
    let mut closers: Vec<char> = Vec::new();
    // The last offset up to which the text is complete, and the brackets to close there.
    let mut safe: (usize, Vec<char>) = (0, Vec::new());
    let mut in_string = false;
    let mut string_start = 0;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                // Models put raw line breaks into strings, which JSON forbids.
                '\n' => {
                    json.push_str("\\n");
                    continue;
                }
                c if c.is_control() => continue,
                _ => {}
            }
            json.push(c);
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                // After the closing quote.
                string_start = json.len() + 1;
            }
            // No summary is nested this deep, and continuing would copy the list of open brackets at every comma.
            '{' | '[' if closers.len() == MAX_DEPTH => return (String::new(), at),
            '{' => closers.push('}'),
            '[' => closers.push(']'),
            ',' => safe = (json.len(), closers.clone()),
            '}' | ']' => {
                let end = json.trim_end().len();
                if json[..end].ends_with(',') {
                    json.truncate(end - 1);
                }
                closers.pop();
                json.push(c);
                if closers.is_empty() {
                    return (json, at + c.len_utf8());
                }
                safe = (json.len(), closers.clone());
                continue;
            }
            _ => {}
        }
        json.push(c);
    }
    let is_prose = place == Place::Outermost
        && in_string
        && closers.len() == 1
        && json[..string_start - 1].trim_end().ends_with(':');
    let prose = if is_prose { whole_sentences(&json[string_start..]).len() } else { 0 };
    if prose > 0 {
        json.truncate(string_start + prose);
        json.push_str("\"}");
        return (json, text.len());
    }
    json.truncate(safe.0);
    json.extend(safe.1.iter().rev());
    (json, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        find_object(text, |object| object.contains_key("a")).map(|object| Value::Object(object).to_string())
    }

    #[test]
    fn finds_objects_where_models_put_them() {
        for text in [
            r#"{"a":[1,2]}"#,
            "Here you are:\n```json\n{\"a\": [1, 2,],\n}\n```\nAnything else?",
            r#"The set {x} and {"b":1} aside: {"a":[1,2]} and {"a":3}"#,
            r#"[{"a":[1,2]}]"#,
        ] {
            assert_eq!(found(text).as_deref(), Some(r#"{"a":[1,2]}"#), "{text}");
        }
    }

    #[test]
    fn a_truncated_answer_keeps_its_complete_parts() {
        assert_eq!(found(r#"{"a":["one","tw"#).as_deref(), Some(r#"{"a":["one"]}"#));
        assert_eq!(found(r#"{"a":[{"t":"x"},{"t":"#).as_deref(), Some(r#"{"a":[{"t":"x"}]}"#));
    }

    #[test]
    fn truncated_prose_keeps_its_complete_sentences() {
        assert_eq!(found(r#"{"a": "One. Two \"x\". Thr"#).as_deref(), Some(r#"{"a":"One. Two \"x\"."}"#));
        assert_eq!(found(r#"{"b": [], "a": "One. Tw"#).as_deref(), Some(r#"{"a":"One.","b":[]}"#));
        for text in [r#"{"a": "On"#, r#"{"a. b"#, r#"{"a. "#, r#"{"b": ["One. Tw"#, r#"{"b": {"a": "One. Tw"#]
        {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn accepts_raw_line_breaks_in_strings() {
        assert_eq!(found("{\"a\":\"x\ny\"}").as_deref(), Some(r#"{"a":"x\ny"}"#));
    }

    #[test]
    fn text_without_an_object_has_none() {
        for text in ["", "no", "{", "}{", "{{{{{{{{{{{{{{", "[1, 2]"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_rejected() {
        assert_eq!(found(&"{\"a\":".repeat(50_000)), None);
    }
}
