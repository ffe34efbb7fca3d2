//! Writes an excerpt of a long text: its head and tail, the lines with errors, and the identifiers that are in neither.

use tidegate_engine::Tokens;
use tidegate_tokens::{Encoding, count};

/// What an excerpt is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Tokens,
    /// Identifiers worth naming, the first ones first.
    pub(super) identifiers: &'a [&'a str],
    /// What the marker says besides: the reference, if there is one.
    pub(super) reference: Option<&'a str>,
    pub(super) encoding: Encoding,
}

/// The shares of an excerpt. The head has what is left.
const TAIL: f64 = 0.25;
const ERRORS: f64 = 0.20;
const IDENTIFIERS: f64 = 0.25;

/// How often a too long excerpt is written again with less room.
const ATTEMPTS: usize = 6;

/// An error further to the right of a line is not shown.
const MAX_ERROR_LINE: usize = 160;

/// Returns an excerpt of at most `keep` tokens, and its cost. `None` if that is not possible, or would save nothing.
pub(super) fn excerpt(source: &Source<'_>, keep: Tokens) -> Option<(String, Tokens)> {
    // Scaling the length of the text by the tokens that it has finds the right room for most texts at once.
    let density = source.text.len() as f64 / source.tokens.0.max(1) as f64;
    let mut room = (keep.0 as f64 * density) as usize;
    for _ in 0..ATTEMPTS {
        let excerpt = write(source, room);
        let tokens = count(source.encoding, &excerpt);
        if tokens <= keep {
            return (tokens < source.tokens).then_some((excerpt, tokens));
        }
        room = room * 9 / 10 * keep.0 as usize / tokens.0.max(1) as usize;
    }
    None
}

/// Writes an excerpt of about this many bytes.
fn write(source: &Source<'_>, room: usize) -> String {
    let share = |share: f64| (room as f64 * share) as usize;
    let text = source.text;
    let tail = last(text, share(TAIL));
    let head_room = room.saturating_sub(tail.len() + share(ERRORS) + share(IDENTIFIERS));
    let head = first(&text[..text.len() - tail.len()], head_room);
    let middle = &text[head.len()..text.len() - tail.len()];
    let errors = error_lines(middle, share(ERRORS));
    let shown = |identifier: &str| {
        head.contains(identifier)
            || tail.contains(identifier)
            || errors.iter().any(|line| line.contains(identifier))
    };
    let mut named = Vec::new();
    // What errors leave is the identifiers'.
    let used: usize = errors.iter().map(|line| line.len() + 1).sum();
    let mut left = share(IDENTIFIERS) + share(ERRORS).saturating_sub(used);
    for identifier in source.identifiers.iter().filter(|identifier| !shown(identifier)) {
        let Some(rest) = left.checked_sub(identifier.len() + 2) else { break };
        left = rest;
        named.push(*identifier);
    }
    assemble(head, &marker(source, middle), &errors, &named, tail)
}

fn assemble(head: &str, marker: &str, errors: &[&str], named: &[&str], tail: &str) -> String {
    let mut excerpt = head.trim_end().to_owned();
    let mut line = |text: &str| {
        if !excerpt.is_empty() {
            excerpt.push('\n');
        }
        excerpt.push_str(text);
    };
    line(marker);
    if !errors.is_empty() {
        line("[lines with errors:]");
        errors.iter().for_each(|error| line(error));
    }
    if !named.is_empty() {
        line(&format!("[also in it: {}]", named.join(", ")));
    }
    let tail = tail.trim_start_matches(['\n', '\r']);
    if !tail.trim().is_empty() {
        line("[end:]");
        line(tail);
    }
    excerpt
}

/// Says how much is left out, and that it is not lost.
fn marker(source: &Source<'_>, middle: &str) -> String {
    let left_out = source.tokens.0 as f64 * middle.len() as f64 / source.text.len().max(1) as f64;
    let left_out = left_out.round();
    let lines = middle.lines().count();
    let reference = source.reference.map(|reference| format!("; ref {reference}")).unwrap_or_default();
    format!(
        "[TRIMMED_OBSERVATION: about {left_out} tokens ({lines} lines) are left out here; the original is intact{reference}]"
    )
}

/// The first lines that fit, or the beginning of the first line.
fn first(text: &str, room: usize) -> &str {
    if text.len() <= room {
        return text;
    }
    let end = boundary_at_or_before(text, room);
    match text[..end].rfind('\n') {
        Some(line) if line >= room / 2 => &text[..=line],
        Some(_) | None => &text[..end],
    }
}

/// The last lines that fit, or the end of the last line.
fn last(text: &str, room: usize) -> &str {
    if text.len() <= room {
        return text;
    }
    let start = text.len() - room;
    let start = (start..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    match text[start..].find('\n') {
        Some(line) if line <= room / 2 => &text[start + line + 1..],
        Some(_) | None => &text[start..],
    }
}

/// The last index at or before `at` where the text can be cut.
fn boundary_at_or_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The different lines that report an error, as far as they fit.
fn error_lines(text: &str, room: usize) -> Vec<&str> {
    let mut errors: Vec<&str> = Vec::new();
    let mut left = room;
    for line in text.lines().map(str::trim).filter(|line| reports_error(line)) {
        let line = &line[..boundary_at_or_before(line, MAX_ERROR_LINE)];
        if errors.contains(&line) {
            continue;
        }
        let Some(rest) = left.checked_sub(line.len() + 1) else { break };
        left = rest;
        errors.push(line);
    }
    errors
}

const WORDS: [&str; 8] =
    ["error", "exception", "traceback", "fatal", "panic", "failed", "failure", "not found"];

/// Whether the beginning of a line has a word that errors have.
fn reports_error(line: &str) -> bool {
    let start = &line[..boundary_at_or_before(line, MAX_ERROR_LINE)];
    let start = start.to_ascii_lowercase();
    WORDS.iter().any(|word| start.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str, keep: u64, identifiers: &[&str]) -> Option<String> {
        let tokens = count(Encoding::O200k, text);
        let reference = Some("7f3a09c1");
        let source = Source { text, tokens, identifiers, reference, encoding: Encoding::O200k };
        excerpt(&source, Tokens(keep)).map(|(excerpt, _)| excerpt)
    }

    #[test]
    fn an_excerpt_has_head_tail_errors_and_identifiers() {
        let mut lines: Vec<String> = (0..400).map(|number| format!("line {number} of the log")).collect();
        lines[200] = "ERROR: cannot open the file".to_owned();
        lines[210] = "see ticket_4711 for more".to_owned();
        let excerpt = of(&lines.join("\n"), 300, &["ticket_4711"]).unwrap();
        assert!(excerpt.starts_with("line 0 of the log\nline 1"), "{excerpt}");
        assert!(excerpt.ends_with("line 399 of the log"), "{excerpt}");
        for expected in [
            "ERROR: cannot open the file",
            "[also in it: ticket_4711]",
            "the original is intact; ref 7f3a09c1]",
        ] {
            assert!(excerpt.contains(expected), "{expected}: {excerpt}");
        }
        assert!(count(Encoding::O200k, &excerpt) <= Tokens(300));
    }

    #[test]
    fn too_little_room_gives_none() {
        assert_eq!(of(&"word ".repeat(2000), 10, &[]), None);
        assert_eq!(of("short", 400, &[]), None);
    }

    proptest! {
        #[test]
        fn an_excerpt_is_never_longer_than_allowed(text in "(\\PC{0,40}\n?){0,60}", keep in 20u64..400) {
            if let Some(excerpt) = of(&text, keep, &["an_identifier"]) {
                prop_assert!(count(Encoding::O200k, &excerpt) <= Tokens(keep));
                prop_assert!(count(Encoding::O200k, &excerpt) < count(Encoding::O200k, &text));
                prop_assert_eq!(of(&text, keep, &["an_identifier"]), Some(excerpt));
            }
        }
    }
}
