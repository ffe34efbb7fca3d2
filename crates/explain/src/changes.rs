//! What became of the messages of a request, line by line.

use crate::fate::Action;
use crate::folding::Insertion;
use crate::{Case, Ending, grouped};
use std::fmt::Write;
use std::ops::Range;
use tidegate_engine::Tokens;
use tidegate_wire::split;

/// One message that changes or comes, or several that follow each other and go for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub what: What,
    /// The client's messages that it is about; for one of our own, the one that it stands before.
    pub messages: Range<usize>,
    pub before: Tokens,
    pub after: Tokens,
    pub lines: Vec<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Changed(Action),
    Inserted(Insertion),
    Removed(Action),
}

/// A line of the JSON of a message: only white space differs from the bytes that came and went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub op: Op,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Same,
    Less,
    More,
}

impl Op {
    /// As `diff -u` marks it.
    #[must_use]
    pub fn mark(self) -> char {
        match self {
            Op::Same => ' ',
            Op::Less => '-',
            Op::More => '+',
        }
    }
}

/// How texts are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// One member a line, and all of it.
    Members,
    /// The same, with a new line behind every line break that is spelled in a text, and no more of it than anybody looks at: a few
    /// bytes can nest so deep that they take a hundred times as many to lay out.
    Breaks,
}

/// So much of a change is laid out for a page.
const MOST_SHOWN: usize = 256 * 1024;

/// Deeper levels stand where this one does.
const DEEPEST: usize = 24;

impl Case<'_> {
    /// Every message that would change, go or come. Empty if none does, or if the request would not be forwarded at all. Messages of
    /// our own and those that stand for text are laid out with their line breaks; a changed one member a line.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.laid_out(Layout::Members, &(0..self.fates.len()))
    }

    /// The same of the messages in a range, with line breaks in all of them.
    #[must_use]
    pub fn changes_within(&self, messages: &Range<usize>) -> Vec<Change> {
        self.laid_out(Layout::Breaks, messages)
    }

    fn laid_out(&self, layout: Layout, wanted: &Range<usize>) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(rewritten) = self.rewritten.as_deref().filter(|_| self.ending() != Ending::Refused) else {
            return changes;
        };
        // What was written by us is JSON with messages.
        let Ok(after) = split(self.request.outline.dialect, rewritten) else { return changes };
        let mut forwarded = after.messages.iter().map(|span| span.of(rewritten));
        let insertions = self.insertions();
        let mut index = 0;
        while index < self.fates.len() {
            for (_, insertion) in insertions.iter().filter(|(before, _)| *before == index) {
                let Some(json) = forwarded.next() else { return changes };
                if wanted.contains(&index) {
                    changes.push(inserted(*insertion, index, json));
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
                let (what, messages) = (What::Changed(fate.action), index..index + 1);
                let lines = compare(&layout.of(old), &layout.of(new));
                changes.push(Change { what, messages, before: fate.tokens, after: fate.after, lines });
            }
            index += 1;
        }
        changes
    }

    fn removed(&self, layout: Layout, run: Range<usize>, action: Action) -> Change {
        let before = self.fates[run.clone()].iter().map(|fate| fate.tokens).sum();
        let mut lines = Vec::new();
        let mut shown = 0;
        for (place, span) in self.request.outline.messages[run.clone()].iter().enumerate() {
            if layout == Layout::Breaks && shown > MOST_SHOWN {
                let left = grouped((run.len() - place) as u64);
                lines.push(Line { op: Op::Less, text: format!("… {left} more messages") });
                break;
            }
            let text = layout.of(span.of(self.request.body));
            shown += text.len();
            lines.extend(all(Op::Less, &text));
        }
        Change { what: What::Removed(action), messages: run, before, after: Tokens::ZERO, lines }
    }
}

/// A message of our own, with its line breaks: there is nowhere else to read it.
fn inserted(insertion: Insertion, before: usize, json: &[u8]) -> Change {
    let after = match insertion {
        Insertion::Summary { tokens, .. } | Insertion::Memory { tokens } => tokens,
        Insertion::Marker => Tokens::ZERO,
    };
    let lines = all(Op::More, &Layout::Breaks.of(json));
    let messages = before..before + 1;
    Change { what: What::Inserted(insertion), messages, before: Tokens::ZERO, after, lines }
}

fn all(op: Op, text: &str) -> Vec<Line> {
    text.lines().map(|line| Line { op, text: line.to_owned() }).collect()
}

impl Layout {
    fn of(self, json: &[u8]) -> String {
        match self {
            Layout::Members => indented(json, usize::MAX),
            Layout::Breaks => broken(&indented(json, MOST_SHOWN)),
        }
    }
}

/// The same JSON with a new line behind every line break that is spelled in it.
fn broken(json: &str) -> String {
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
/// A JSON value, one member a line. Only white space between tokens changes: spellings and order are the client's. It ends behind about
/// `most` bytes, and says so.
fn indented(raw: &[u8], most: usize) -> String {
    let mut out = String::with_capacity(raw.len().saturating_mul(2).min(most));
    let mut depth = 0;
    let text = String::from_utf8_lossy(raw);
    let mut letters = text.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        let _ = write!(out, "\n{:width$}", "", width = 2 * depth.min(DEEPEST));
    };
    while let Some(letter) = letters.next() {
        if out.len() >= most {
            let _ = write!(out, "\n… the rest of {} bytes", grouped(raw.len() as u64));
            break;
        }
        match letter {
            '"' => {
                out.push('"');
                while let Some(letter) = letters.next_if(|_| out.len() < most) {
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

/// The lines of both, those that they share once.
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

/// So many pairs of lines are compared with each other; beyond it all of the old ones go and all of the new ones come.
const MOST_PAIRS: usize = 4_000_000;

/// By the longest run of lines that both share. An edit makes its message shorter, so `new` is a few lines here, however
/// long `old` is.
fn compare_middle(add: &mut impl FnMut(Op, &str), old: &[&str], new: &[&str]) {
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        old.iter().for_each(|line| add(Op::Less, line));
        new.iter().for_each(|line| add(Op::More, line));
        return;
    }
    // How many lines `old[i..]` and `new[j..]` share, at `[i][j]`.
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
    fn lines_that_both_have_are_shown_once() {
        assert_eq!(diff("a\nb\nc\nd\ne", "a\nc\nx\ne"), " a\n-b\n c\n-d\n+x\n e\n");
        assert_eq!(diff("a", "a"), " a\n");
        assert_eq!(diff("a\na", "a"), " a\n-a\n");
    }

    #[test]
    fn what_is_too_long_to_compare_goes_and_comes_whole() {
        let old: String = (0..3_000).map(|number| format!("a{number}\n")).collect();
        let new: String = (0..3_000).map(|number| format!("b{number}\n")).collect();
        let lines = compare(&old, &new);
        assert_eq!((lines.len(), lines[2_999].op, lines[3_000].op), (6_000, Op::Less, Op::More));
    }

    #[test]
    fn only_white_space_between_tokens_changes() {
        let raw = br#"{ "b":1e9,"a" : [ ] ,"c":["x, {y\"", {}],"d":{"e":null}}"#;
        let expected = "{\n  \"b\": 1e9,\n  \"a\": [],\n  \"c\": [\n    \"x, {y\\\"\",\n    {}\n  ],\n  \"d\": {\n    \"e\": null\n  }\n}";
        assert_eq!(indented(raw, usize::MAX), expected);
    }

    #[test]
    fn what_is_shown_is_bounded_however_it_is_nested() {
        let deep = format!("{}{}0{}", "[".repeat(120), "0,".repeat(1_000_000), "]".repeat(120));
        let long = format!("[\"{}\"]", "x\\n".repeat(2_000_000));
        for json in [deep, long] {
            let text = Layout::Breaks.of(json.as_bytes());
            assert!(text.len() < 4 * MOST_SHOWN, "{}", text.len());
            assert!(text.ends_with("bytes"), "{}", &text[text.len() - 60..]);
        }
    }

    #[test]
    fn lines_break_where_the_text_does() {
        assert_eq!(broken(r#""a\nb\\nc\"\n""#), "\"a\\n\n    b\\\\nc\\\"\\n\n    \"");
    }
}
