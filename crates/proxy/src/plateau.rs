//! Whether an agent goes round in circles: its calls fail, or it makes the same call, or gets the same result, again and again.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use tidegate_engine::{Kind, Message, Role};
use tidegate_wire::{Content, MessageView, Outline, ParsedRequest, Part};

/// One turn: what the assistant did, and what came of it.
#[derive(Debug, Default)]
struct Step {
    /// Stands for the calls; where there are none, for the words and what the user had said before them.
    action: u64,
    /// Stands for the results; none where there were no calls, or where they say no more than that it is done.
    results: Option<u64>,
    has_failed: bool,
}

/// How many turns in a row, up to the last one, have brought nothing new; nothing if that is fewer than `window`.
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

/// The last turns, the oldest first. A conversation is not read further back than that.
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
    // The same words are no circle where they answer something new.
    let asked = || {
        let before = (0..start).rev().take_while(|&at| messages[at].role != Role::Assistant);
        let said = before.filter(|&at| messages[at].is_user_turn());
        said.filter_map(view).map(|view| text(&view)).collect::<Vec<_>>()
    };
    let action = view(start).map_or(start as u64, |view| action(&view, asked));
    let observations = (start + 1..end).filter(|&at| messages[at].kind == Kind::Observation);
    let texts: Vec<String> = observations.filter_map(view).map(|view| text(&view)).collect();
    let results = texts.iter().any(|text| is_telling(text)).then(|| hash(&texts));
    Step { action, results, has_failed: !texts.is_empty() && texts.iter().all(|text| is_failure(text)) }
}

/// Calls by their tools and arguments; their ids are new each time.
fn action(view: &MessageView<'_>, asked: impl FnOnce() -> Vec<String>) -> u64 {
    let calls: Vec<(String, String)> =
        view.calls().map(|call| (call.name.to_string(), call.arguments.to_string())).collect();
    if calls.is_empty() { hash(&(asked(), text(view))) } else { hash(&calls) }
}

/// Whether a result is more than an acknowledgement: many different calls are all answered by "ok" or by nothing at all.
fn is_telling(result: &str) -> bool {
    result.trim().chars().nth(LONGEST_NOD).is_some()
}

const LONGEST_NOD: usize = 8;

fn text(view: &MessageView<'_>) -> String {
    match &view.content {
        Content::Text(text) => text.to_string(),
        Content::Parts(parts) => {
            let text = |part: &Part<'_>| match part {
                Part::Text(text) => text.to_string(),
                _ => String::new(),
            };
            parts.iter().map(text).collect()
        }
        Content::Absent | Content::Null | Content::Unexpected(_) => String::new(),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Of a longer result only the beginning tells whether it is a failure.
const LONGEST: usize = 16 * 1024;

/// What tools say when they fail: there is no field for it in the protocol.
fn is_failure(text: &str) -> bool {
    let text = text.trim_start();
    let start: String = text.chars().take(200).flat_map(char::to_lowercase).collect();
    let words = ["error", "exception", "traceback", "fatal", "failed", "failure", "command failed", "<error"];
    let begins =
        |word: &&str| start.strip_prefix(*word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    if words.iter().any(begins) || text.contains("Traceback (most recent call last)") {
        return true;
    }
    // A longer result is data, and not worth the time to look into.
    let result = (text.len() <= LONGEST).then(|| serde_json::from_str::<serde_json::Value>(text));
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
    fn failures_are_told_by_what_tools_say() {
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
