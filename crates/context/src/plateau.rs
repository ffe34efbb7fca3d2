//! Detects an agent that makes no progress: its calls fail, or it repeats the same calls or gets the same results.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use tidegate_engine::{Kind, Message, Role};
use tidegate_wire::{Content, MessageView, Outline, ParsedRequest, Part};

/// One turn: what the assistant did, and what resulted.
#[derive(Debug, Default)]
struct Step {
    /// A hash of the calls; without calls, of the words and of what the user said before them.
    action: u64,
    /// A hash of the results; `None` if there were no calls, or if the results are mere acknowledgements.
    results: Option<u64>,
    has_failed: bool,
}

/// Counts the turns in a row, up to the last one, that brought nothing new; `None` if there are fewer than `window`.
pub(crate) fn plateau(body: &[u8], outline: &Outline, chat: &ParsedRequest, window: u32) -> Option<u32> {
    let window = usize::try_from(window).unwrap_or(usize::MAX);
    let steps = steps(body, outline, &chat.messages, window.saturating_mul(2));
    if steps.len() < window {
        return None;
    }
    let mut stuck = 0;
    let (mut actions, mut results) = (HashSet::new(), HashSet::new());
    for Step { action, results: found, has_failed } in steps {
        let is_known = !actions.insert(action) | found.is_some_and(|found| !results.insert(found));
        stuck = if is_known || has_failed { stuck + 1 } else { 0 };
    }
    u32::try_from(stuck).ok().filter(|_| stuck >= window)
}

/// The last turns, oldest first. Earlier ones are not read.
fn steps(body: &[u8], outline: &Outline, messages: &[Message], most: usize) -> Vec<Step> {
    let mut starts: Vec<usize> =
        (0..messages.len()).filter(|&at| messages[at].role == Role::Assistant).collect();
    starts.drain(..starts.len().saturating_sub(most));
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    let turns = starts.iter().copied().zip(ends);
    turns.map(|(start, end)| step(body, outline, messages, start, end)).collect()
}

fn step(body: &[u8], outline: &Outline, messages: &[Message], start: usize, end: usize) -> Step {
    let view = |at: usize| outline.dialect.read_message(outline.messages[at].of(body)).ok();
    // The same reply to a new question is progress.
    let asked = || {
        let before = (0..start).rev().take_while(|&at| messages[at].role != Role::Assistant);
        let said = before.filter(|&at| messages[at].is_user_turn());
        said.filter_map(view).map(|view| text(&view)).collect::<Vec<_>>()
    };
    let action = view(start).map_or(start as u64, |view| action(&view, asked));
    let observations = (start + 1..end).filter(|&at| messages[at].kind == Kind::Observation);
    let texts: Vec<String> = observations.filter_map(view).map(|view| text(&view)).collect();
    let results = texts.iter().any(|text| is_informative(text)).then(|| hash(&texts));
    Step { action, results, has_failed: !texts.is_empty() && texts.iter().all(|text| is_failure(text)) }
}

/// Calls by their tools and arguments; their ids are new each time.
fn action(view: &MessageView<'_>, asked: impl FnOnce() -> Vec<String>) -> u64 {
    let calls: Vec<(String, String)> =
        view.calls().map(|call| (call.name.to_string(), call.arguments.to_string())).collect();
    if calls.is_empty() { hash(&(asked(), text(view))) } else { hash(&calls) }
}

/// Whether a result is more than an acknowledgement: many different calls are answered by "ok" or by nothing.
fn is_informative(result: &str) -> bool {
    result.trim().chars().nth(LONGEST_ACKNOWLEDGEMENT).is_some()
}

const LONGEST_ACKNOWLEDGEMENT: usize = 8;

fn text(view: &MessageView<'_>) -> String {
    let text = |content: &Content<'_>| match content {
        Content::Text(text) => text.to_string(),
        Content::Parts(parts) => {
            let text = |part: &Part<'_>| match part {
                Part::Text(text) => text.to_string(),
                _ => String::new(),
            };
            parts.iter().map(text).collect()
        }
        Content::Absent | Content::Null | Content::Unexpected(_) => String::new(),
    };
    view.contents().map(text).collect()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Longer results are not parsed as JSON.
const LONGEST_JSON: usize = 16 * 1024;

/// Recognises a failure by its text, because the protocol has no field for it.
fn is_failure(text: &str) -> bool {
    let text = text.trim_start();
    let start: String = text.chars().take(200).flat_map(char::to_lowercase).collect();
    let words = ["error", "exception", "traceback", "fatal", "failed", "failure", "command failed", "<error"];
    let begins =
        |word: &&str| start.strip_prefix(*word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    if words.iter().any(begins) || text.contains("Traceback (most recent call last)") {
        return true;
    }
    // A longer result is data.
    let result = (text.len() <= LONGEST_JSON).then(|| serde_json::from_str::<serde_json::Value>(text));
    match result {
        Some(Ok(serde_json::Value::Object(result))) => {
            let is = |key: &str, value: serde_json::Value| result.get(key) == Some(&value);
            let mut errors = [result.get("error"), result.get("errors")].into_iter().flatten();
            let has_error = errors.any(|error| !is_nothing(error));
            let code =
                ["exit_code", "exitCode", "returncode"].iter().find_map(|key| result.get(*key)?.as_i64());
            has_error
                || code.is_some_and(|code| code != 0)
                || is("success", false.into())
                || is("ok", false.into())
                || is("is_error", true.into())
                || is("isError", true.into())
                || is("status", "error".into())
                || is("status", "failed".into())
        }
        _ => false,
    }
}

fn is_nothing(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null | serde_json::Value::Bool(false) => true,
        serde_json::Value::String(text) => text.is_empty(),
        serde_json::Value::Array(items) => items.is_empty(),
        serde_json::Value::Object(members) => members.is_empty(),
        serde_json::Value::Number(count) => count.as_f64() == Some(0.0),
        serde_json::Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_recognised_by_their_text() {
        for text in [
            "Error: no such file",
            "\n  fatal: not a git repository",
            "x\nTraceback (most recent call last):\n",
            r#"{"error":"boom"}"#,
            r#"{"success":false}"#,
            r#"{"exit_code":1,"stdout":""}"#,
            r#"{"error":null,"errors":["boom"]}"#,
            r#"{"errors":2}"#,
        ] {
            assert!(is_failure(text), "{text}");
        }
        for text in [
            "errors were not found",
            "0 errors",
            r#"{"error":null,"ok":true}"#,
            r#"{"exit_code":0}"#,
            r#"{"errors":0,"warnings":3}"#,
            r#"{"error":{}}"#,
            "",
            "[]",
        ] {
            assert!(!is_failure(text), "{text}");
        }
    }
}
