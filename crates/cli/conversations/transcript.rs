//! Renders the messages of a conversation for people.

use super::terminal::{one_line, plain};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use tidegate_admin::MessageEntry;
use tidegate_context::TurnRecord;

/// The messages of a conversation in order, and the last turn, which records what was masked.
#[derive(Debug)]
pub(super) struct Transcript<'a> {
    pub(super) messages: &'a [MessageEntry],
    pub(super) last_turn: Option<&'a TurnRecord>,
    pub(super) length: Length,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// The first lines of every message, with long lines shortened.
    Short,
    Full,
}

const SHORT_LINES: usize = 6;
const SHORT_LINE: usize = 160;

impl Transcript<'_> {
    /// Renders the last `limit` messages of the most recent branch, followed by the messages of other
    /// branches if there is no limit.
    pub(super) fn render(&self, limit: usize) -> String {
        let (newest, masked, trimmed) =
            (self.newest_branch(), self.edited(|turn| &turn.masked), self.edited(|turn| &turn.trimmed));
        let read = self.messages.iter().map(|entry| (entry, value(entry)));
        let (ours, others): (Vec<_>, Vec<_>) = read.partition(|(entry, value)| {
            matches!(role(value.as_ref()), "system" | "developer") || newest.contains(entry.id.as_str())
        });
        let shown = ours.len().min(limit);
        let mut out = format!("messages{}\n", earlier(ours.len(), shown));
        let write = |out: &mut String, entry: &MessageEntry, value: &Option<Value>| {
            let mark = match entry {
                entry if entry.abandoned => "  [not kept: its turn failed]",
                entry if masked.contains(entry.id.as_str()) => "  [masked in the last turn]",
                entry if trimmed.contains(entry.id.as_str()) => "  [trimmed in the last turn]",
                _ => "",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "#{} {}{mark}", entry.position, speaker(value.as_ref()));
            write_text(out, &text(entry, value.as_ref()), self.length);
        };
        for (entry, value) in &ours[ours.len() - shown..] {
            write(&mut out, entry, value);
        }
        if limit == usize::MAX && !others.is_empty() {
            out.push_str("\nmessages of other branches\n");
            for (entry, value) in &others {
                write(&mut out, entry, value);
            }
        }
        out
    }

    /// The messages of the most recent branch.
    fn newest_branch(&self) -> HashSet<&str> {
        let newest = self.messages.iter().filter(|entry| !entry.abandoned);
        let newest = newest.max_by_key(|entry| (entry.at, entry.position));
        self.chain(newest.map_or("", |entry| entry.id.as_str())).map(|entry| entry.id.as_str()).collect()
    }

    /// The messages that the last turn masked or trimmed.
    fn edited(&self, by: fn(&TurnRecord) -> &Vec<usize>) -> HashSet<&str> {
        let Some(turn) = self.last_turn else { return HashSet::new() };
        let edited: HashSet<usize> = by(turn).iter().copied().collect();
        let is_edited = |entry: &&MessageEntry| {
            usize::try_from(entry.position).is_ok_and(|position| edited.contains(&position))
        };
        self.chain(&turn.end).filter(is_edited).map(|entry| entry.id.as_str()).collect()
    }

    /// The messages from `end` back to the first.
    fn chain(&self, end: &str) -> impl Iterator<Item = &MessageEntry> {
        let by_id: HashMap<&str, &MessageEntry> =
            self.messages.iter().map(|entry| (entry.id.as_str(), entry)).collect();
        let first = by_id.get(end).copied();
        // Bounded in case a damaged store contains a cycle.
        std::iter::successors(first, move |entry| by_id.get(entry.parent.as_str()).copied())
            .take(self.messages.len())
    }
}

/// Indented, so that no text can be mistaken for a heading.
pub(super) fn write_text(out: &mut String, text: &str, length: Length) {
    let text = plain(text);
    let mut lines = text.lines();
    let max_lines = if length == Length::Full { usize::MAX } else { SHORT_LINES };
    for line in lines.by_ref().take(max_lines) {
        let end = line.char_indices().nth(SHORT_LINE).map(|(at, _)| at);
        let _ = match end.filter(|_| length == Length::Short) {
            Some(end) => writeln!(out, "    {}…", &line[..end]),
            None => writeln!(out, "    {line}"),
        };
    }
    let more = lines.count();
    if more > 0 {
        let _ =
            writeln!(out, "    … {more} more line{}; --full shows them", if more == 1 { "" } else { "s" });
    }
}

/// Notes that only the last ones are shown.
pub(super) fn earlier(count: usize, shown: usize) -> String {
    if shown < count { format!(" (the last {shown} of {count})") } else { String::new() }
}

/// The parsed message, or `None` if it is not valid JSON.
fn value(entry: &MessageEntry) -> Option<Value> {
    entry.message.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok())
}

fn role(message: Option<&Value>) -> &str {
    let Some(message) = message else { return "unreadable" };
    match (message["role"].as_str(), item_type(message)) {
        (Some(role), _) => role,
        (None, Some(kind)) if kind.ends_with("_output") => "tool",
        (None, Some(_)) => "assistant",
        // The items of an answer.
        (None, None) if message.is_array() => "assistant",
        (None, None) => "unreadable",
    }
}

/// The type of an item of OpenAI's responses.
fn item_type(message: &Value) -> Option<&str> {
    message["type"].as_str()
}

/// The role, with the name and tool call id.
fn speaker(message: Option<&Value>) -> String {
    let mut speaker = one_line(role(message));
    let members: &[&str] =
        if speaker == "tool" { &["name", "tool_call_id", "call_id"] } else { &["name", "tool_call_id"] };
    for member in members {
        if let Some(name) = message.and_then(|message| message[member].as_str())
            // The name of an item that is a call stands with the call.
            && (speaker.starts_with("tool") || message.is_some_and(|message| !message["role"].is_null()))
        {
            let _ = write!(speaker, " {}", one_line(name));
        }
    }
    speaker
}

/// The text of a message, a label for each non-text part, and its tool calls.
fn text(entry: &MessageEntry, message: Option<&Value>) -> String {
    let Some(message) = message else {
        let raw = entry.message.as_ref().map(|raw| raw.get());
        return raw.or(entry.text.as_deref()).unwrap_or_default().to_owned();
    };
    let mut pieces = Vec::new();
    match message {
        Value::Array(items) => items.iter().for_each(|item| item_text(item, &mut pieces)),
        item => item_text(item, &mut pieces),
    }
    pieces.join("\n")
}

fn item_text(message: &Value, pieces: &mut Vec<String>) {
    match item_type(message) {
        Some("reasoning") => pieces.push("[reasoning]".to_owned()),
        Some(kind) if message["role"].is_null() && message["output"].is_null() => {
            let input = ["arguments", "input", "action", "operation"].map(|member| &message[member]);
            match input.into_iter().find(|input| !input.is_null()) {
                Some(input) => pieces.push(call(message["name"].as_str().unwrap_or(kind), input)),
                None => pieces.push(format!("[{kind}]")),
            }
        }
        _ => {}
    }
    content(&message["content"], pieces);
    content(&message["output"], pieces);
    if let Some(refusal) = message["refusal"].as_str() {
        pieces.push(format!("[refusal] {refusal}"));
    }
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]);
    for function in calls.chain(message.get("function_call")) {
        pieces.push(call(function["name"].as_str().unwrap_or("?"), &function["arguments"]));
    }
}

fn call(name: &str, input: &Value) -> String {
    let arguments = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
    format!("→ {name}({})", if input.is_null() { "" } else { &arguments })
}

fn content(content: &Value, pieces: &mut Vec<String>) {
    match content {
        Value::Null => {}
        Value::String(text) => pieces.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|one| part(one, pieces)),
        other => pieces.push(other.to_string()),
    }
}

fn part(part: &Value, pieces: &mut Vec<String>) {
    match (part["text"].as_str(), part["type"].as_str()) {
        (Some(text), _) => pieces.push(text.to_owned()),
        (None, Some("tool_use")) => {
            pieces.push(call(part["name"].as_str().unwrap_or("?"), &part["input"]));
        }
        (None, Some("tool_result")) => content(&part["content"], pieces),
        (None, Some(kind)) => pieces.push(format!("[{kind}]")),
        (None, None) => pieces.push("[?]".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, parent: &str, position: u32, at: u64, json: &str) -> MessageEntry {
        let message = serde_json::from_str(json).ok();
        let text = message.is_none().then(|| json.to_owned());
        MessageEntry {
            id: id.to_owned(),
            parent: parent.to_owned(),
            position,
            at,
            abandoned: false,
            message,
            text,
        }
    }

    fn rendered(messages: &[MessageEntry], last_turn: Option<&TurnRecord>, length: Length) -> String {
        Transcript { messages, last_turn, length }.render(usize::MAX)
    }

    #[test]
    fn masked_messages_are_marked_and_other_branches_come_last() {
        let messages = [
            entry("s", "0", 0, 1, r#"{"role":"system","content":"be"}"#),
            entry("a", "0", 1, 1, r#"{"role":"user","content":"ask"}"#),
            entry("b", "a", 2, 2, r#"{"role":"tool","tool_call_id":"c1","content":"old"}"#),
            entry("x", "a", 2, 1, r#"{"role":"assistant","content":"left"}"#),
            entry(
                "d",
                "b",
                3,
                3,
                r#"{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}"#,
            ),
        ];
        let turn = TurnRecord { masked: vec![2], end: "b".to_owned(), ..TurnRecord::default() };
        assert_eq!(
            rendered(&messages, Some(&turn), Length::Short),
            "messages\n#0 system\n    be\n#1 user\n    ask\n#2 tool c1  [masked in the last turn]\n    old\n\
             #3 assistant\n    → f({})\n\nmessages of other branches\n#2 assistant\n    left\n"
        );
    }

    #[test]
    fn every_dialect_is_shown() {
        let messages = [
            entry(
                "a",
                "0",
                0,
                1,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"}]}]}"#,
            ),
            entry(
                "b",
                "a",
                1,
                2,
                r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]}"#,
            ),
            entry(
                "c",
                "b",
                2,
                3,
                r#"[{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},
                {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"shell_call","action":{"commands":["ls"]}}]"#,
            ),
            entry("d", "c", 3, 4, r#"{"type":"function_call_output","call_id":"c","output":"y"}"#),
            entry("e", "d", 4, 5, r#"{"type":"item_reference","id":"x"}"#),
        ];
        assert_eq!(
            rendered(&messages, None, Length::Short),
            "messages\n#0 user\n    x\n#1 assistant\n    → f({\"a\":1})\n#2 assistant\n    [reasoning]\n    ok\n    → f({})\n    \
             → shell_call({\"commands\":[\"ls\"]})\n#3 tool c\n    y\n#4 assistant\n    [item_reference]\n"
        );
    }

    #[test]
    fn a_limit_shows_the_last_messages() {
        let messages = [
            entry("a", "0", 0, 1, r#"{"role":"user","content":"ask"}"#),
            entry("b", "a", 1, 2, r#"{"role":"assistant","content":"say"}"#),
            entry("x", "a", 1, 1, r#"{"role":"assistant","content":"left"}"#),
        ];
        let transcript = Transcript { messages: &messages, last_turn: None, length: Length::Short };
        assert_eq!(transcript.render(1), "messages (the last 1 of 2)\n#1 assistant\n    say\n");
    }

    #[test]
    fn long_messages_are_shortened_unless_full() {
        let text = format!("{}\\n{}", "é".repeat(200), "l\\n".repeat(9));
        let messages = [entry("a", "0", 0, 1, &format!("{{\"role\":\"user\",\"content\":\"{text}\"}}"))];
        let short = rendered(&messages, None, Length::Short);
        assert!(short.contains(&format!("    {}…\n", "é".repeat(160))), "{short}");
        assert!(short.ends_with("    l\n    … 4 more lines; --full shows them\n"), "{short}");
        let full = rendered(&messages, None, Length::Full);
        assert!(full.contains(&"é".repeat(200)) && full.matches("    l\n").count() == 9, "{full}");
    }

    #[test]
    fn a_message_cannot_imitate_another_or_control_the_terminal() {
        let messages = [
            entry(
                "a",
                "0",
                0,
                1,
                r##"{"role":"user\u001b[1m","content":"x\n#1 system\n\u001b]0;t\u0007\r"}"##,
            ),
            entry("b", "a", 1, 2, "no json\u{1b}"),
            entry(
                "c",
                "b",
                2,
                3,
                r#"{"role":"user","content":[{"type":"image_url"},{"type":"text","text":"t"}]}"#,
            ),
            entry("d", "c", 3, 4, r#"{"role":"user","content":"\ud800"}"#),
        ];
        assert_eq!(
            rendered(&messages, None, Length::Short),
            "messages\n#0 user\\u{1b}[1m\n    x\n    #1 system\n    \\u{1b}]0;t\\u{7}\\u{d}\n#1 unreadable\n    no json\\u{1b}\n\
             #2 user\n    [image_url]\n    t\n#3 unreadable\n    {\"role\":\"user\",\"content\":\"\\ud800\"}\n"
        );
    }
}
