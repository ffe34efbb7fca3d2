//! Parses message numbers in the forms that models write them.

use serde_json::Value;

use crate::MessageRef;

/// The maximum number of messages that an entry rests on. One that rests on everything rests on nothing.
pub(crate) const MAX_REFERENCES: usize = 16;

/// Returns the numbers in a value that contains references: `3`, `"m3"`, `"#3"`, `"[3, 4]"`, `[3, "message
/// 4"]`, `{"id": 3}`.
pub(crate) fn references(value: &Value) -> Vec<MessageRef> {
    let mut found = Vec::new();
    collect(value, &mut found, 0);
    found
}

/// Splits the references off the end of a text: `Uses redb [m3, m4]` gives `Uses redb`, 3 and 4.
///
/// In parentheses, a number needs a letter or `#` in front of it, because `(2024)` is usually a year.
pub(crate) fn trailing(text: &str) -> (&str, Vec<MessageRef>) {
    let trimmed = text.trim_end().trim_end_matches('.').trim_end();
    let (open, needs_mark) = match trimmed.chars().next_back() {
        Some(']') => ('[', false),
        Some(')') => ('(', true),
        _ => return (text, Vec::new()),
    };
    let Some(at) = trimmed.rfind(open) else {
        return (text, Vec::new());
    };
    let before = &trimmed[..at];
    if !before.is_empty() && !before.ends_with(char::is_whitespace) {
        return (text, Vec::new());
    }
    let inside = &trimmed[at + 1..trimmed.len() - 1];
    let mut found = Vec::new();
    for part in inside.split([',', ';', ' ']).filter(|part| !part.is_empty()) {
        let digits = part.trim_start_matches(['m', 'M', '#']);
        let marked = digits.len() < part.len();
        match digits.parse() {
            Ok(number) if marked || !needs_mark => found.push(MessageRef(number)),
            _ => return (text, Vec::new()),
        }
    }
    if found.is_empty() { (text, found) } else { (before.trim_end(), found) }
}

fn collect(value: &Value, found: &mut Vec<MessageRef>, depth: usize) {
    match value {
        Value::Number(number) => {
            found.extend(number.as_u64().and_then(|n| u32::try_from(n).ok()).map(MessageRef))
        }
        Value::String(text) => {
            let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
            found.extend(numbers.map(MessageRef).take(MAX_REFERENCES));
        }
        Value::Array(items) if depth < 3 => items.iter().for_each(|item| collect(item, found, depth + 1)),
        Value::Object(members) if depth < 3 => {
            members.values().for_each(|item| collect(item, found, depth + 1))
        }
        Value::Array(_) | Value::Object(_) | Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_numbers_in_every_form() {
        for value in [
            json!([3, 4]),
            json!("[3], [4]"),
            json!(["m3", "#4"]),
            json!("messages 3 and 4"),
            json!([{ "id": 3 }, 4]),
        ] {
            assert_eq!(references(&value), [MessageRef(3), MessageRef(4)], "{value}");
        }
        assert!(references(&json!([-1, 2.5, null, true, "none", 99999999999u64])).is_empty());
    }

    #[test]
    fn splits_references_off_the_end() {
        for text in ["Uses redb [3]", "Uses redb [m3].", "Uses redb (#3)", "Uses redb (m3)"] {
            assert_eq!(trailing(text), ("Uses redb", vec![MessageRef(3)]), "{text}");
        }
        assert_eq!(trailing("Uses redb [3, m4]").1, [MessageRef(3), MessageRef(4)]);
    }

    #[test]
    fn keeps_other_brackets() {
        for text in ["Founded (2024)", "see items[3]", "optional [x]", "]", "[]", "()", "(m)"] {
            assert_eq!(trailing(text), (text, vec![]), "{text}");
        }
    }
}
