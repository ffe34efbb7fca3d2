use std::collections::HashSet;

use crate::fence::without_bullet;
use crate::{Section, Summary};

/// Removes the lines of a summary that repeat a line of the pinned notes.
///
/// Only lines that are equal except for case, spacing and a bullet go. A paraphrase stays, because losing a fact is worse than
/// repeating it.
pub fn without(summary: &Summary, pinned: &str) -> Summary {
    let known: HashSet<String> = pinned.lines().map(plain).filter(|line| !line.is_empty()).collect();
    let is_new = |line: &str| !known.contains(&plain(line));
    let mut kept = summary.clone();
    if summary.summary_text.lines().any(|line| !is_new(line)) {
        kept.summary_text =
            summary.summary_text.lines().filter(|line| is_new(line)).collect::<Vec<_>>().join("\n");
    }
    for section in Section::ALL {
        kept.list_mut(section).retain(|entry| is_new(&entry.text));
    }
    kept
}

/// Normalizes a line to compare it with the pinned notes: lowercase, single spaces, no bullet.
fn plain(line: &str) -> String {
    let line = line.trim();
    // A minus before a digit is a sign, and two marks in a row are emphasis or a command-line flag.
    let is_bullet =
        |after: &str| !after.starts_with(|next: char| BULLETS.contains(&next) || next.is_ascii_digit());
    let body = line.strip_prefix(BULLETS).filter(|after| is_bullet(after)).unwrap_or(line);
    body.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

const BULLETS: [char; 3] = ['-', '*', '•'];

/// Normalizes a line to compare it with another one of the same summary: lowercase, single spaces, no bullet or heading mark, no
/// emphasis, no final punctuation. Signs inside (`C++`, `1.5`, `-5`) are kept.
pub(crate) fn normal(line: &str) -> String {
    let body = without_bullet(line.trim());
    let mut normal = String::with_capacity(body.len());
    for word in body.split_whitespace() {
        let word = word.trim_matches(|c| matches!(c, '*' | '_' | '`' | '~'));
        if word.is_empty() {
            continue;
        }
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.extend(word.chars().flat_map(char::to_lowercase));
    }
    let end = normal.trim_end_matches(['.', ',', ';', ':', '!', '。', '…', '*', '_', '`', ' ']).len();
    normal.truncate(end);
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    #[test]
    fn lines_that_differ_only_in_formatting_are_equal() {
        for line in [
            "User prefers dark mode",
            "  - user   prefers dark MODE. ",
            "* **User** prefers `dark mode`",
            "• User prefers\tdark mode!",
            "## User prefers dark mode:",
            "- [x] User prefers _dark mode_",
            "> user prefers dark mode",
        ] {
            assert_eq!(normal(line), "user prefers dark mode", "{line}");
        }
    }

    #[test]
    fn lines_with_different_content_differ() {
        for (one, other) in [
            ("Use C", "Use C++"),
            ("Offset is 5", "Offset is -5"),
            ("Rate 1.5", "Rate 15"),
            ("Ask Ann", "Ask Ann about the key"),
            ("Deploy?", "Deploy"),
        ] {
            assert_ne!(normal(one), normal(other));
        }
    }

    #[test]
    fn only_repeated_lines_are_removed() {
        let summary = Summary {
            summary_text: "Lives in Oslo.\nMoved there in 2019.".into(),
            key_facts: vec![Entry::new("Allergic to nuts", []), Entry::new("Allergic to nuts and milk", [])],
            decisions: vec![Entry::new("- Use METRIC  units.", []), Entry::new("Use metric units", [])],
            ..Summary::default()
        };
        let kept =
            without(&summary, "# Memory\n- lives in Oslo.\n• allergic to  nuts\n\n* use metric units.\n");
        assert_eq!(kept.summary_text, "Moved there in 2019.");
        assert_eq!(kept.key_facts, [Entry::new("Allergic to nuts and milk", [])]);
        assert_eq!(kept.decisions, [Entry::new("Use metric units", [])]);
    }

    #[test]
    fn a_mark_that_is_not_a_bullet_is_kept() {
        for bulleted in ["uses vim", "- uses vim", "-uses vim", "*\tUses  VIM", "• uses vim", "-"] {
            let expected = if bulleted == "-" { "" } else { "uses vim" };
            assert_eq!(plain(bulleted), expected, "{bulleted}");
        }
        for other in ["-5 degrees", "**uses** vim", "--uses vim", "+ uses vim", "uses vim.", "uses, vim"] {
            assert_ne!(plain(other), plain("uses vim"));
            assert_ne!(plain(other), plain("5 degrees"));
        }
    }

    #[test]
    fn empty_notes_change_nothing() {
        let summary = Summary { summary_text: "One.\n\nTwo.".into(), ..Summary::default() };
        assert_eq!(without(&summary, "\n - \n"), summary);
    }
}
