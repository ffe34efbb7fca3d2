//! What would change in which message, as `diff -u` shows it.

use super::fate::{Action, Fate};
use super::figures::tokens;
use super::folding::Insertion;
use super::{Case, Ending};
use crate::number::grouped;
use anyhow::Context;
use std::fmt::Write;
use std::ops::Range;
use tidegate_engine::Tokens;
use tidegate_wire::split;

/// Lines longer than this are shown by their ends.
const LONGEST: usize = 160;
const HEAD: usize = 80;
const TAIL: usize = 40;

/// Every message that would change, go or come. Empty if none does, or if the request would not be forwarded at all.
pub(super) fn render(case: &Case<'_>) -> anyhow::Result<String> {
    let mut out = String::new();
    let Some(rewritten) = case.rewritten.as_deref().filter(|_| case.ending() != Ending::Refused) else {
        return Ok(out);
    };
    let after = split(rewritten).context("the rewritten request cannot be read")?;
    let mut forwarded = after.messages.iter().map(|span| span.of(rewritten));
    let mut next = || forwarded.next().context("the rewritten request has too few messages");
    let insertions = case.insertions();
    let mut index = 0;
    while index < case.fates.len() {
        for (_, insertion) in insertions.iter().filter(|(before, _)| *before == index) {
            write_inserted(&mut out, *insertion, index, next()?);
        }
        let fate = &case.fates[index];
        if fate.action.removes() {
            let run = case.fates[index..].iter().take_while(|one| one.action == fate.action).count();
            write_removed(&mut out, case, index..index + run, fate.action);
            index += run;
            continue;
        }
        let (old, new) = (case.outline.messages[index].of(case.body), next()?);
        if old != new {
            write_changed(&mut out, index, fate, (old, new));
        }
        index += 1;
    }
    Ok(out)
}

fn write_changed(out: &mut String, index: usize, fate: &Fate, (old, new): (&[u8], &[u8])) {
    let _ = writeln!(out, "--- messages[{index}] as sent, {} tokens", tokens(fate.tokens));
    let _ = writeln!(out, "+++ messages[{index}] as forwarded, {} tokens", tokens(fate.after));
    let (old, new) = (indented(old), indented(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let _ = writeln!(out, "@@ -1,{} +1,{} @@", old.len(), new.len());
    compare(out, &old, &new);
}

/// A message of our own, in its whole length: there is nowhere else to read it.
fn write_inserted(out: &mut String, insertion: Insertion, before: usize, json: &[u8]) {
    let what = match insertion {
        Insertion::Summary { tokens: size, .. } => format!("a summary as forwarded, {} tokens", tokens(size)),
        Insertion::Marker => "a marker as forwarded".to_owned(),
    };
    let lines = broken(&indented(json));
    let _ = writeln!(out, "--- nothing before messages[{before}]");
    let _ = writeln!(out, "+++ {what}");
    let _ = writeln!(out, "@@ -0,0 +1,{} @@", lines.lines().count());
    for line in lines.lines() {
        out.push('+');
        shown(out, line.chars());
        out.push('\n');
    }
}

/// Messages that follow each other and go for the same reason.
fn write_removed(out: &mut String, case: &Case<'_>, run: Range<usize>, action: Action) {
    let sent: Tokens = case.fates[run.clone()].iter().map(|fate| fate.tokens).sum();
    let (first, last) = (run.start, run.end - 1);
    let which =
        if first == last { format!("messages[{first}]") } else { format!("messages[{first}] to [{last}]") };
    let why = if action == Action::Fold { "covered by the summary" } else { "dropped for the marker" };
    let lines: Vec<String> =
        case.outline.messages[run].iter().map(|span| indented(span.of(case.body))).collect();
    let count: usize = lines.iter().map(|message| message.lines().count()).sum();
    let _ = writeln!(out, "--- {which} as sent, {} tokens", tokens(sent));
    let _ = writeln!(out, "+++ nothing: {why}");
    let _ = writeln!(out, "@@ -1,{count} +0,0 @@");
    lines.iter().flat_map(|message| message.lines()).for_each(|line| write_line(out, '-', line));
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

/// A JSON value, one member a line. Only white space between tokens changes: spellings and order are the client's.
fn indented(raw: &[u8]) -> String {
    let mut out = String::with_capacity(raw.len() * 2);
    let mut depth = 0;
    let text = String::from_utf8_lossy(raw);
    let mut letters = text.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        let _ = write!(out, "\n{:width$}", "", width = 2 * depth);
    };
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                out.push('"');
                while let Some(letter) = letters.next() {
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

/// Writes the lines of both, those that they share once.
fn compare(out: &mut String, old: &[&str], new: &[&str]) {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (start, old, new) = (&old[..same], &old[same..], &new[same..]);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, end) = old.split_at(old.len() - same);
    let new = &new[..new.len() - same];
    start.iter().for_each(|line| write_line(out, ' ', line));
    compare_middle(out, old, new);
    end.iter().for_each(|line| write_line(out, ' ', line));
}

/// By the longest run of lines that both share. An edit makes its message shorter, so `new` is a few lines here, however
/// long `old` is.
fn compare_middle(out: &mut String, old: &[&str], new: &[&str]) {
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
            write_line(out, ' ', old[i]);
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || shared[i + 1][j] >= shared[i][j + 1]) {
            write_line(out, '-', old[i]);
            i += 1;
        } else {
            write_line(out, '+', new[j]);
            j += 1;
        }
    }
}

fn write_line(out: &mut String, mark: char, line: &str) {
    let length = line.chars().count();
    out.push(mark);
    if length <= LONGEST {
        shown(out, line.chars());
    } else {
        shown(out, line.chars().take(HEAD));
        let _ = write!(out, " … {} characters … ", grouped((length - HEAD - TAIL) as u64));
        shown(out, line.chars().skip(length - TAIL));
    }
    out.push('\n');
}

/// JSON escapes the control characters that terminals obey, all but a few.
fn shown(out: &mut String, letters: impl Iterator<Item = char>) {
    for letter in letters {
        if letter.is_control() {
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        let mut out = String::new();
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        compare(&mut out, &old, &new);
        out
    }

    #[test]
    fn lines_that_both_have_are_shown_once() {
        assert_eq!(diff("a\nb\nc\nd\ne", "a\nc\nx\ne"), " a\n-b\n c\n-d\n+x\n e\n");
        assert_eq!(diff("a", "a"), " a\n");
        assert_eq!(diff("a\na", "a"), " a\n-a\n");
    }

    #[test]
    fn only_white_space_between_tokens_changes() {
        let raw = br#"{ "b":1e9,"a" : [ ] ,"c":["x, {y\"", {}],"d":{"e":null}}"#;
        let expected = "{\n  \"b\": 1e9,\n  \"a\": [],\n  \"c\": [\n    \"x, {y\\\"\",\n    {}\n  ],\n  \"d\": {\n    \"e\": null\n  }\n}";
        assert_eq!(indented(raw), expected);
    }

    #[test]
    fn lines_break_where_the_text_does() {
        assert_eq!(broken(r#""a\nb\\nc\"\n""#), "\"a\\n\n    b\\\\nc\\\"\\n\n    \"");
    }

    #[test]
    fn a_long_line_is_shown_by_its_ends() {
        let line = format!("{}{}", "é".repeat(80), "z".repeat(120));
        let mut out = String::new();
        write_line(&mut out, '-', &line);
        assert_eq!(out, format!("-{} … 80 characters … {}\n", "é".repeat(80), "z".repeat(40)));
    }
}
