//! The changes to the messages of a request, as a line-by-line diff.

use crate::fate::Action;
use crate::folding::Insertion;
use crate::{Case, Ending, grouped};
use std::fmt::Write;
use std::ops::Range;
use tidegate_context::Place;
use tidegate_engine::Tokens;
use tidegate_wire::split;

/// A changed or inserted message, or a run of messages removed by the same action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub what: What,
    /// The client's messages that are affected. For an insertion, the message that it precedes.
    pub messages: Range<usize>,
    pub before: Tokens,
    pub after: Tokens,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// An action, and texts that are added to the message.
    Changed(Action, Vec<Insertion>),
    /// A message of our own.
    Inserted(Vec<Insertion>),
    Removed(Action),
}

/// A line of a message's JSON. It differs from the actual bytes only in white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub op: Op,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Same,
    /// Removed.
    Less,
    /// Added.
    More,
}

impl Op {
    /// The mark of `diff -u`.
    #[must_use]
    pub fn mark(self) -> char {
        match self {
            Op::Same => ' ',
            Op::Less => '-',
            Op::More => '+',
        }
    }
}

/// How JSON is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// One member per line, without a limit.
    Complete,
    /// Also with a new line after every `\n` in a string, and limited in size: deeply nested JSON can grow a hundredfold when it is
    /// indented.
    Readable,
}

/// The maximum size of a change in the readable layout, in bytes.
const MAX_READABLE: usize = 256 * 1024;

/// The maximum depth of indentation.
const MAX_INDENT: usize = 24;

impl Case<'_> {
    /// Returns every changed, removed and inserted message; nothing for a request that is refused. Inserted messages are shown with
    /// their line breaks, others with one JSON member per line.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.formatted_changes(Layout::Complete, &(0..self.fates.len()))
    }

    /// Returns the changes to a range of messages, all with their line breaks and limited in size.
    #[must_use]
    pub fn changes_within(&self, messages: &Range<usize>) -> Vec<Change> {
        self.formatted_changes(Layout::Readable, messages)
    }

    fn formatted_changes(&self, layout: Layout, wanted: &Range<usize>) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(rewritten) = self.rewritten.as_deref().filter(|_| self.ending() != Ending::Refused) else {
            return changes;
        };
        // The rewritten request is always valid JSON with messages.
        let Ok(after) = split(self.request.outline.dialect, rewritten) else { return changes };
        let mut forwarded = after.messages.iter().map(|span| span.of(rewritten));
        let mut index = 0;
        while index < self.fates.len() {
            for own in self.messages_before(index) {
                let Some(json) = forwarded.next() else { return changes };
                if wanted.contains(&index) {
                    changes.push(inserted(own, index, json));
                }
            }
            let fate = &self.fates[index];
            if fate.action.removes() {
                let run = self.fates[index..].iter().take_while(|one| one.action == fate.action).count();
                let (first, last) = (index.max(wanted.start), (index + run).min(wanted.end));
                if first < last {
                    changes.push(self.removed(layout, first..last, fate.action));
                }
                index += run;
                continue;
            }
            let Some(new) = forwarded.next() else { return changes };
            let old = self.request.outline.messages[index].of(self.request.body);
            if old != new && wanted.contains(&index) {
                let own = self.texts_in(index);
                // Texts of our own are shown with their line breaks, because they cannot be read anywhere else.
                let layout = if own.is_empty() { layout } else { Layout::Readable };
                let after = fate.after + own.iter().map(Insertion::tokens).sum();
                let (what, messages) = (What::Changed(fate.action, own), index..index + 1);
                let lines = compare(&layout.format(old), &layout.format(new));
                changes.push(Change { what, messages, before: fate.tokens, after, lines });
            }
            index += 1;
        }
        changes
    }

    /// The texts in each message of our own before this one.
    fn messages_before(&self, index: usize) -> Vec<Vec<Insertion>> {
        let mut messages: Vec<Vec<Insertion>> = Vec::new();
        for (place, insertion) in self.insertions() {
            match (place, messages.last_mut()) {
                (Place::Joined(before), Some(last)) if before == index => last.push(insertion),
                (Place::Before(before), _) if before == index => messages.push(vec![insertion]),
                (Place::Before(_) | Place::Joined(_) | Place::In(_), _) => {}
            }
        }
        messages
    }

    /// The texts in a message of the client's.
    fn texts_in(&self, index: usize) -> Vec<Insertion> {
        let here = self.insertions().into_iter().filter(|(place, _)| *place == Place::In(index));
        here.map(|(_, insertion)| insertion).collect()
    }

    fn removed(&self, layout: Layout, run: Range<usize>, action: Action) -> Change {
        let before = self.fates[run.clone()].iter().map(|fate| fate.tokens).sum();
        let mut lines = Vec::new();
        let mut shown = 0;
        for (place, span) in self.request.outline.messages[run.clone()].iter().enumerate() {
            if layout == Layout::Readable && shown > MAX_READABLE {
                let left = grouped((run.len() - place) as u64);
                lines.push(Line { op: Op::Less, text: format!("… {left} more messages") });
                break;
            }
            let text = layout.format(span.of(self.request.body));
            shown += text.len();
            lines.extend(lines_of(Op::Less, &text));
        }
        Change { what: What::Removed(action), messages: run, before, after: Tokens::ZERO, lines }
    }
}

/// Describes an inserted message. It is shown with its line breaks, because it cannot be read anywhere else.
fn inserted(own: Vec<Insertion>, before: usize, json: &[u8]) -> Change {
    let after = own.iter().map(Insertion::tokens).sum();
    let lines = lines_of(Op::More, &Layout::Readable.format(json));
    let messages = before..before + 1;
    Change { what: What::Inserted(own), messages, before: Tokens::ZERO, after, lines }
}

fn lines_of(op: Op, text: &str) -> Vec<Line> {
    text.lines().map(|line| Line { op, text: line.to_owned() }).collect()
}

impl Layout {
    fn format(self, json: &[u8]) -> String {
        match self {
            Layout::Complete => indented(json, usize::MAX),
            Layout::Readable => break_lines(&indented(json, MAX_READABLE)),
        }
    }
}

/// Adds a new line after every escaped line break in the JSON.
fn break_lines(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut letters = json.chars();
    while let Some(letter) = letters.next() {
        out.push(letter);
        if letter == '\\' {
            let escaped = letters.next();
            out.extend(escaped);
            if escaped == Some('n') {
                out.push_str("\n    ");
            }
        }
    }
    out
}

/// Formats a JSON value with one member per line. Only white space between tokens changes. The output is cut off after about `max`
/// bytes, with a note.
fn indented(raw: &[u8], max: usize) -> String {
    let mut out = String::with_capacity(raw.len().saturating_mul(2).min(max));
    let mut depth = 0;
    let text = String::from_utf8_lossy(raw);
    let mut letters = text.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        let _ = write!(out, "\n{:width$}", "", width = 2 * depth.min(MAX_INDENT));
    };
    while let Some(letter) = letters.next() {
        if out.len() >= max {
            let _ = write!(out, "\n… the rest of {} bytes", grouped(raw.len() as u64));
            break;
        }
        match letter {
            '"' => {
                out.push('"');
                while let Some(letter) = letters.next_if(|_| out.len() < max) {
                    out.push(letter);
                    match letter {
                        '\\' => out.extend(letters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(letter);
                while letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(close) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            letter if letter.is_ascii_whitespace() => {}
            letter => out.push(letter),
        }
    }
    out
}

/// Returns the diff of two texts.
fn compare(old: &str, new: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (start, old, new) = (&old[..same], &old[same..], &new[same..]);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, end) = old.split_at(old.len() - same);
    let new = &new[..new.len() - same];
    let mut lines = Vec::new();
    let mut add = |op, text: &str| lines.push(Line { op, text: text.to_owned() });
    start.iter().for_each(|line| add(Op::Same, line));
    compare_middle(&mut add, old, new);
    end.iter().for_each(|line| add(Op::Same, line));
    lines
}

/// The maximum number of line pairs to compare. Beyond it, all old lines count as removed and all new ones as added.
const MAX_PAIRS: usize = 4_000_000;

/// Diffs by the longest common subsequence. An edit makes its message shorter, so `new` is short here, however long `old` is.
fn compare_middle(add: &mut impl FnMut(Op, &str), old: &[&str], new: &[&str]) {
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        old.iter().for_each(|line| add(Op::Less, line));
        new.iter().for_each(|line| add(Op::More, line));
        return;
    }
    // `shared[i][j]` is the length of the longest common subsequence of `old[i..]` and `new[j..]`.
    let mut shared = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            shared[i][j] = if old[i] == new[j] {
                shared[i + 1][j + 1] + 1
            } else {
                shared[i + 1][j].max(shared[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            add(Op::Same, old[i]);
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || shared[i + 1][j] >= shared[i][j + 1]) {
            add(Op::Less, old[i]);
            i += 1;
        } else {
            add(Op::More, new[j]);
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        compare(old, new).iter().map(|line| format!("{}{}\n", line.op.mark(), line.text)).collect()
    }

    #[test]
    fn common_lines_are_shown_once() {
        assert_eq!(diff("a\nb\nc\nd\ne", "a\nc\nx\ne"), " a\n-b\n c\n-d\n+x\n e\n");
        assert_eq!(diff("a", "a"), " a\n");
        assert_eq!(diff("a\na", "a"), " a\n-a\n");
    }

    #[test]
    fn texts_too_long_to_compare_are_replaced_completely() {
        let old: String = (0..3_000).map(|number| format!("a{number}\n")).collect();
        let new: String = (0..3_000).map(|number| format!("b{number}\n")).collect();
        let lines = compare(&old, &new);
        assert_eq!((lines.len(), lines[2_999].op, lines[3_000].op), (6_000, Op::Less, Op::More));
    }

    #[test]
    fn indenting_changes_only_white_space_between_tokens() {
        let raw = br#"{ "b":1e9,"a" : [ ] ,"c":["x, {y\"", {}],"d":{"e":null}}"#;
        let expected = "{\n  \"b\": 1e9,\n  \"a\": [],\n  \"c\": [\n    \"x, {y\\\"\",\n    {}\n  ],\n  \"d\": {\n    \"e\": null\n  }\n}";
        assert_eq!(indented(raw, usize::MAX), expected);
    }

    #[test]
    fn the_readable_layout_is_bounded_for_nested_and_long_json() {
        let deep = format!("{}{}0{}", "[".repeat(120), "0,".repeat(1_000_000), "]".repeat(120));
        let long = format!("[\"{}\"]", "x\\n".repeat(2_000_000));
        for json in [deep, long] {
            let text = Layout::Readable.format(json.as_bytes());
            assert!(text.len() < 4 * MAX_READABLE, "{}", text.len());
            assert!(text.ends_with("bytes"), "{}", &text[text.len() - 60..]);
        }
    }

    #[test]
    fn lines_break_at_escaped_line_breaks() {
        assert_eq!(break_lines(r#""a\nb\\nc\"\n""#), "\"a\\n\n    b\\\\nc\\\"\\n\n    \"");
    }
}
