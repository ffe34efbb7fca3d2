//! Finding the JSON object in what a model wrote.

use serde_json::{Map, Value};

use crate::whole::whole;

/// How many opening braces are tried. Prose with braces before the object is rare, and a text of braces must
/// not cost more than a few passes.
const TRIES: usize = 8;
const MAX_DEPTH: usize = 32;

/// The first object in the text that passes `wanted`: bare, in a code fence, with prose around it, with
/// trailing commas, or cut off at the end.
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

/// Whether an object may stand inside one that never ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outermost,
    Inside,
}

/// The value that starts the text, without trailing commas and with its brackets closed, and where it ended.
///
/// A model that runs into its token limit stops in the middle of a string: what was complete before that is
/// worth having. Of prose, which is a member of the object itself, that is every whole sentence; half an entry
/// of a list is nothing, and neither is half of an object inside another one.
fn tidied(text: &str, place: Place) -> (String, usize) {
    let mut json = String::with_capacity(text.len());
    let mut closers: Vec<char> = Vec::new();
    // Where the text could be cut so that it is complete up to there, and what would have to be closed.
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
                // Models put real line breaks into strings, which JSON forbids.
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
                // Behind the quote, which follows.
                string_start = json.len() + 1;
            }
            // Deeper than any summary. Going on would copy the closers at every comma.
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
    let prose = if is_prose { whole(&json[string_start..]).len() } else { 0 };
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
    fn objects_are_found_where_models_put_them() {
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
    fn an_answer_that_was_cut_off_keeps_what_was_complete() {
        assert_eq!(found(r#"{"a":["one","tw"#).as_deref(), Some(r#"{"a":["one"]}"#));
        assert_eq!(found(r#"{"a":[{"t":"x"},{"t":"#).as_deref(), Some(r#"{"a":[{"t":"x"}]}"#));
    }

    #[test]
    fn prose_that_was_cut_off_keeps_its_whole_sentences() {
        assert_eq!(found(r#"{"a": "One. Two \"x\". Thr"#).as_deref(), Some(r#"{"a":"One. Two \"x\"."}"#));
        assert_eq!(found(r#"{"b": [], "a": "One. Tw"#).as_deref(), Some(r#"{"a":"One.","b":[]}"#));
        for text in [r#"{"a": "On"#, r#"{"a. b"#, r#"{"a. "#, r#"{"b": ["One. Tw"#, r#"{"b": {"a": "One. Tw"#]
        {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn line_breaks_in_strings_are_read() {
        assert_eq!(found("{\"a\":\"x\ny\"}").as_deref(), Some(r#"{"a":"x\ny"}"#));
    }

    #[test]
    fn text_without_an_object_has_none() {
        for text in ["", "no", "{", "}{", "{{{{{{{{{{{{{{", "[1, 2]"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        assert_eq!(found(&"{\"a\":".repeat(50_000)), None);
    }
}
