//! Answers a model that asks for what was shortened: the original of a message, some of its lines, or what matches a query.
//!
//! An answer is bounded, because it becomes part of the context that shortening has made room in.

use crate::ranking::{Hit, rank};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::ops::Range;
use std::sync::LazyLock;
use tidegate_engine::Reference;
use tidegate_wire::{RECALL_TOOL, Terms};

/// A message as it was before it was shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    pub reference: Reference,
    /// The role of whoever said it.
    pub speaker: String,
    pub text: String,
}

/// What the model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallRequest {
    pub reference: Reference,
    query: Option<String>,
    /// Lines, counted from one.
    lines: Option<(usize, usize)>,
}

/// The arguments of a call cannot be understood. The text is for the model, which can try again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadArguments(String);

/// The most bytes of an answer, without the line that introduces it.
const MAX_BYTES: usize = 32 * 1024;

/// The most passages of an answer to a query.
const MAX_PASSAGES: usize = 12;

impl RecallRequest {
    /// The JSON schema of the arguments. It is part of what providers cache, so it never changes without need.
    pub const SCHEMA: &'static str = r#"{"type":"object","properties":{"ref":{"type":"string","description":"The reference in the marker, such as 7f3a09c1."},"query":{"type":"string","description":"Return only the passages that match these words."},"lines":{"type":"string","description":"Return only these lines, such as 10-40."}},"required":["ref"]}"#;

    /// Reads the arguments of a call, generously: what models write varies.
    pub fn read(arguments: &str) -> Result<RecallRequest, BadArguments> {
        #[derive(Deserialize)]
        struct Arguments {
            r#ref: String,
            query: Option<Value>,
            lines: Option<Value>,
        }
        let arguments: Arguments = serde_json::from_str(arguments).map_err(|_| {
            BadArguments(
                "The arguments must be a JSON object with the text `ref`, such as {\"ref\":\"7f3a09c1\"}."
                    .to_owned(),
            )
        })?;
        let reference = arguments.r#ref.parse().map_err(|error| {
            BadArguments(format!("`ref` is not a reference ({error}), such as 7f3a09c1 in a marker."))
        })?;
        let query = arguments.query.as_ref().and_then(Value::as_str).map(str::trim);
        Ok(RecallRequest {
            reference,
            query: query.filter(|query| !query.is_empty()).map(str::to_owned),
            lines: arguments.lines.as_ref().and_then(read_lines),
        })
    }

    /// The answer, given the text of the message that is referred to.
    #[must_use]
    pub fn answer(&self, original: &str) -> String {
        self.answer_within(original, MAX_BYTES)
    }

    /// The same with at most this much of the message.
    #[must_use]
    pub fn answer_within(&self, original: &str, most: usize) -> String {
        let (reference, most) = (self.reference, most.min(MAX_BYTES));
        if let Some(query) = &self.query {
            return match matching(original, query, most).as_slice() {
                [] => format!(
                    "Nothing in ref {reference} matches `{}`. Ask for its lines instead.",
                    brief(query)
                ),
                found => found.join("\n[...]\n"),
            };
        }
        let starts = line_starts(original);
        let (first, last) = self.lines.unwrap_or((1, usize::MAX));
        if first > starts.len() {
            return format!("ref {reference} has {} lines.", starts.len());
        }
        let end = starts.get(last).copied().unwrap_or(original.len());
        let wanted = &original[starts[first - 1]..end];
        bounded(wanted, first, starts.len(), most)
    }
}

/// The definition of the tool, behind others in a list. The same in every process and version, as far as possible: every prompt begins with
/// it.
pub fn recall_tool() -> &'static str {
    static TOOL: LazyLock<String> = LazyLock::new(|| {
        format!(
            r#",{{"type":"function","function":{{"name":"{RECALL_TOOL}","description":"{DESCRIPTION}","parameters":{}}}}}"#,
            RecallRequest::SCHEMA
        )
    });
    &TOOL
}

const DESCRIPTION: &str = "Earlier tool results may have been shortened to save context. A marker in their place names a reference, such as ref \
                           7f3a09c1. Call this to read the original, whole or in part. Don't call it for anything that you can see.";

/// The answer to a call beyond the limit.
pub(crate) const NO_MORE_RECALLS: &str =
    "No more recalls are possible for this answer. Answer with what you have.";

/// The answer to a call whose result has no room in the model's window.
pub(crate) const NO_ROOM: &str =
    "There is no room left in the context for this. Ask for fewer `lines`, or answer with what you have.";

/// The answer to a reference that no message has.
#[must_use]
pub fn unknown_reference(reference: Reference) -> String {
    format!(
        "No message of this conversation has the reference {reference}. It may have expired. Do not ask for it again; get the information \
         in another way."
    )
}

/// Searches all messages of a conversation. `query` is in the words of the model.
#[must_use]
pub fn search_originals(originals: &[Original], query: &str, limit: usize) -> String {
    let terms: Vec<Terms> = originals.iter().map(|original| Terms::of(&original.text)).collect();
    let texts: Vec<&Terms> = terms.iter().collect();
    let mut answer = String::new();
    for Hit { text, passage, .. } in rank(&texts, &Terms::words(query)).into_iter().take(limit) {
        let Original { reference, speaker, text: original } = &originals[text];
        let Some(found) = terms[text].passages.get(passage).and_then(|found| original.get(range(found)))
        else {
            continue;
        };
        if answer.len() + found.len() > MAX_BYTES {
            break;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(answer, "[ref {reference}, {speaker}, message {}]\n{found}\n", text + 1);
    }
    if answer.is_empty() {
        return format!("Nothing in this conversation matches `{}`.", brief(query));
    }
    answer.truncate(answer.trim_end().len());
    answer
}

/// The passages of a text that match, in order, each with its lines. Words that stand everywhere tell no passage from another, so a text
/// in which nothing else matches is searched for the query as it is written.
fn matching(text: &str, query: &str, most: usize) -> Vec<String> {
    let terms = Terms::of(text);
    let hits = rank(&[&terms], &Terms::words(query));
    let mut ranges: Vec<Range<usize>> =
        hits.iter().filter_map(|hit| terms.passages.get(hit.passage).map(range)).take(MAX_PASSAGES).collect();
    let starts = line_starts(text);
    if ranges.is_empty() {
        let query = query.to_lowercase();
        let line = |at: usize| starts[at]..starts.get(at + 1).copied().unwrap_or(text.len());
        let has = |line: &Range<usize>| text[line.clone()].to_lowercase().contains(&query);
        ranges = (0..starts.len()).map(line).filter(has).take(MAX_PASSAGES).collect();
    }
    ranges.sort_by_key(|range| range.start);
    let number = |at: usize| starts.partition_point(|start| *start <= at);
    let mut left = most;
    let quoted = |range: Range<usize>| {
        let lines = format!("[lines {}-{}]\n", number(range.start), number(range.end.max(1) - 1));
        let found = cut(text[range].trim_end_matches('\n'), left);
        left -= found.len();
        (!found.is_empty()).then(|| lines + found)
    };
    ranges.into_iter().filter_map(quoted).collect()
}

/// As much of a text as fits, in whole lines, and where it goes on. It begins with line `first` of `all`.
fn bounded(text: &str, first: usize, all: usize, most: usize) -> String {
    if text.len() <= most {
        return text.strip_suffix('\n').unwrap_or(text).to_owned();
    }
    let kept = cut(text, most);
    match kept.rfind('\n') {
        Some(end) => {
            let next = first + kept[..=end].matches('\n').count();
            format!("{}[It goes on. Ask for `lines` \"{next}-{all}\", or with a `query`.]", &kept[..=end])
        }
        None => format!("{kept}\n[Line {first} is cut off here. Ask with a `query`.]"),
    }
}

/// Accepts `"10-40"`, `"10"`, `10` and `[10, 40]`.
fn read_lines(value: &Value) -> Option<(usize, usize)> {
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    let (first, last) = match value {
        Value::Number(_) => (number(value)?, number(value)?),
        Value::Array(both) => (number(both.first()?)?, number(both.last()?)?),
        Value::String(text) => {
            let (first, last) = text.split_once(['-', '–', ':', ',']).unwrap_or((text, text));
            let first = first.trim().parse().ok()?;
            let last = if last.trim().is_empty() { usize::MAX } else { last.trim().parse().ok()? };
            (first, last)
        }
        _ => return None,
    };
    Some((first.max(1), last.max(first).max(1)))
}

fn line_starts(text: &str) -> Vec<usize> {
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
    [0].into_iter().chain(ends.filter(|at| *at < text.len())).collect()
}

fn range(passage: &tidegate_wire::TermCount) -> Range<usize> {
    // Texts are indexed only as far as 32 bits count them.
    passage.start as usize..passage.end as usize
}

/// The beginning of a text, at most this long.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A query as it is quoted in an answer.
fn brief(query: &str) -> &str {
    cut(query, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(arguments: &str, original: &str) -> String {
        RecallRequest::read(arguments).unwrap().answer(original)
    }

    fn numbered(lines: usize) -> String {
        (1..=lines).map(|line| format!("line {line} says nothing in particular\n")).collect()
    }

    #[test]
    fn the_schema_is_json_and_names_what_is_read() {
        let schema: Value = serde_json::from_str(RecallRequest::SCHEMA).unwrap();
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!((names.len(), &schema["required"]), (3, &serde_json::json!(["ref"])));
    }

    #[test]
    fn a_text_is_returned_whole_or_by_lines() {
        let text = "one\ntwo\nthree\nfour";
        assert_eq!(answer(r#"{"ref":"7f3a09c1"}"#, text), text);
        for (lines, expected) in [
            (r#""2-3""#, "two\nthree"),
            (r#""4-9""#, "four"),
            ("2", "two"),
            ("[1,2]", "one\ntwo"),
            (r#""3-""#, "three\nfour"),
            (r#""x""#, text),
            (r#""5-6""#, "ref 7f3a09c1 has 4 lines."),
            (r#""0-1""#, "one"),
            (r#""3-2""#, "three"),
        ] {
            let arguments = format!(r#"{{"ref":"[ref 7f3a09c1]","lines":{lines}}}"#);
            assert_eq!(answer(&arguments, text), expected, "{lines}");
        }
        assert_eq!(answer(r#"{"ref":"7f3a09c1","lines":null,"query":""}"#, ""), "");
    }

    #[test]
    fn a_long_text_says_where_it_goes_on() {
        let text = numbered(2000);
        let mut read = String::new();
        let mut lines = "1-2000".to_owned();
        while let Some((kept, next)) = answer(&format!(r#"{{"ref":"7f3a09c1","lines":"{lines}"}}"#), &text)
            .split_once("[It goes on. Ask for `lines` \"")
        {
            assert!(kept.len() <= MAX_BYTES);
            read.push_str(kept);
            lines = next.split('"').next().unwrap().to_owned();
        }
        read.push_str(&answer(&format!(r#"{{"ref":"7f3a09c1","lines":"{lines}"}}"#), &text));
        assert_eq!(read.trim_end(), text.trim_end());
        assert!(answer(r#"{"ref":"7f3a09c1"}"#, &"é".repeat(40_000)).contains("[Line 1 is cut off here."));
    }

    #[test]
    fn a_query_finds_passages_with_their_lines() {
        let mut text = numbered(400);
        let place = text.find("line 200 ").unwrap();
        text.insert_str(place, "ERROR: the pump of engine_7 is dry\n");
        let found = answer(r#"{"ref":"7f3a09c1","query":"which pump is dry?"}"#, &text);
        assert!(found.contains("engine_7") && found.len() < 2_000, "{found}");
        let lines =
            found.lines().next().unwrap().trim_start_matches("[lines ").trim_end_matches(']').to_owned();
        let (first, last) = lines.split_once('-').unwrap();
        assert!((first.parse().unwrap()..=last.parse().unwrap()).contains(&200usize), "{lines}");
        // A word that every passage has is looked for as it is written.
        let found = answer(r#"{"ref":"7f3a09c1","query":"LINE 399"}"#, &text);
        assert!(found.contains("line 399 "), "{found}");
        let none = answer(r#"{"ref":"7f3a09c1","query":"zebra"}"#, &text);
        assert_eq!(none, "Nothing in ref 7f3a09c1 matches `zebra`. Ask for its lines instead.");
    }

    #[test]
    fn arguments_that_are_none_are_explained() {
        for bad in ["", "[]", "{}", r#"{"ref":7}"#, r#"{"ref":"call_1"}"#] {
            assert!(RecallRequest::read(bad).unwrap_err().to_string().contains("7f3a09c1"), "{bad}");
        }
    }

    #[test]
    fn a_search_names_the_messages_that_it_quotes() {
        let original = |reference: &str, text: &str| Original {
            reference: reference.parse().unwrap(),
            speaker: "tool".to_owned(),
            text: text.to_owned(),
        };
        let all = [
            original("00000001", "The weather is nice."),
            original("00000002", "The password is swordfish."),
        ];
        assert_eq!(
            search_originals(&all, "password", 5),
            "[ref 00000002, tool, message 2]\nThe password is swordfish."
        );
        assert_eq!(search_originals(&all, "zebra", 5), "Nothing in this conversation matches `zebra`.");
    }
}
